"""Whether a class gets what it was promised: its error, and how far and how long that may be exceeded."""

from __future__ import annotations

from collections import deque
from typing import Final, Literal

from freshline.definitions.sections.classes import ServiceClass

State = Literal["IDLE", "KEPT", "SETTLING", "BROKEN"]

# Single periods scatter around what a policy steers for: so many are looked at together, and the error is
# exceeded where their mean is above so many times of it (the paper's settling time, as it is measured).
PERIODS: Final = 3
TOLERANCE: Final = 1.15


class ClassTargets:
    """`error`, `overshoot` and `settling` of one class, held against its periods.

    >>> from fractions import Fraction
    >>> agreement = ClassTargets(ServiceClass("gold", "main", Fraction(1, 2), settling_us=10))
    >>> [agreement.closed(ate, at) for at, ate in ((5, 0.5), (10, 0.6), (15, 0.65), (20, 0.65), (30, 0.65))]
    ['KEPT', 'KEPT', 'SETTLING', 'SETTLING', 'BROKEN']
    """

    def __init__(self, promised: ServiceClass) -> None:
        self.state: State = "IDLE"
        self._error = float(promised.error)
        self._most = self._error * (1 + float(promised.overshoot))
        self._settling_us = promised.settling_us
        self._last: deque[float] = deque(maxlen=PERIODS)
        self._since: int | None = None  # when the error began to be exceeded

    def closed(self, ate: float | None, at: int) -> State:
        """A period has ended at that instant, with that average error; None: nobody was answered."""
        if ate is None:
            self._last.clear()
            self._since = None
            self.state = "IDLE"
            return self.state
        self._last.append(ate)
        mean = sum(self._last) / len(self._last)
        if mean <= TOLERANCE * self._error:
            self._since = None
            self.state = "KEPT"
            return self.state
        self._since = at if self._since is None else self._since
        in_time = at - self._since <= self._settling_us
        self.state = "SETTLING" if in_time and mean <= self._most else "BROKEN"
        return self.state
