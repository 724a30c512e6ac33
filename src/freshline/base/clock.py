"""The one clock of a live run. Components receive it as an argument, so that a test can set it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]


def clock() -> int:
    """Wall-clock time in microseconds since the Unix epoch."""
    return time.time_ns() // 1_000
