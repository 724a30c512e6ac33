"""How long to wait after a failure before the next retry."""

from __future__ import annotations

from typing import Final

from freshline.base.duration import SECOND

_FIRST_US: Final = SECOND // 2
_LONGEST_US: Final = 60 * SECOND
_DOUBLINGS_MAX: Final = 20


def back_off_us(attempts: int, first_us: int = _FIRST_US, longest_us: int = _LONGEST_US) -> int:
    """The wait after this many failures in a row: it doubles each time, up to a limit.

    >>> [back_off_us(attempts) / SECOND for attempts in (1, 2, 3, 7, 8, 1000)]
    [0.5, 1.0, 2.0, 32.0, 60.0, 60.0]
    """
    return min(longest_us, first_us << min(attempts - 1, _DOUBLINGS_MAX))
