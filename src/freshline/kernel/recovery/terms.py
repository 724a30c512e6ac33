"""On which terms tables recover, and what is promised of the way back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from freshline.base.duration import SECOND

NORMAL: Final = 0
RECOVERING: Final = 1
LEAVING: Final = 2  # it has caught up; the share it had is free once its last job's deadline has passed
# A file is found so long after it came at most, on a machine that has other things to do.
FINDING_US: Final = SECOND


@dataclass(frozen=True, slots=True)
class RecoveryTerms:
    """On which terms a table recovers."""

    cost_us: int  # e, as provisioned for
    period_us: int  # p^[r]
    threshold_us: int  # ΔF: a table that is behind by more is late
    response_us: int  # Θ
    jitter_us: int = 0  # J of its feed
    finding_us: int = 0  # live, a file is found a moment after it came: that is no outage
    phase_us: int = 0  # φ of its feed
    weight: Fraction = Fraction(1)
    source_bounds_us: tuple[int | None, ...] = ()  # A(V) of the tables that it reads
    align_us: int = 0  # the windows that it is loaded by

    @property
    def found_within_us(self) -> int:
        """How long after it was due a file is there, at the latest."""
        return self.jitter_us + self.finding_us


@dataclass(slots=True)
class Recovery:
    """A table's way back, from the instant it entered recovery mode."""

    entered: int
    due: int | None  # by when it must be over; None where nothing is promised, or not yet
    ended: int | None = None

    @property
    def in_time(self) -> bool | None:
        """Whether it was over by then; None while that is open or nothing was promised."""
        return None if self.due is None or self.ended is None else self.ended <= self.due
