"""Whether a class meets its targets: its error, and how far and how long it may be exceeded."""

from __future__ import annotations

from collections import deque
from typing import Final, Literal

from freshline.definitions.sections.classes import ServiceClass

State = Literal["IDLE", "KEPT", "SETTLING", "BROKEN"]

# Single periods scatter around the target: the error counts as exceeded if the mean of the last periods is
# above the target times the tolerance (the paper's settling time, as it measures it).
PERIODS: Final = 3
TOLERANCE: Final = 1.15


class ClassTargets:
    """Compares `error`, `overshoot` and `settling` of one class with its periods.

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
        """Takes a period's average error at its end; None: no request was answered."""
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
