"""The terms of a table's recovery, and the promised end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from freshline.base.duration import SECOND

NORMAL: Final = 0
RECOVERING: Final = 1
LEAVING: Final = 2  # it has caught up; its extra share is free after its last job's deadline
# How long it takes at most to find a file, on a busy machine.
FINDING_US: Final = SECOND


@dataclass(frozen=True, slots=True)
class RecoveryTerms:
    """The terms of a table's recovery."""

    cost_us: int  # e, as provisioned for
    period_us: int  # p^[r]
    threshold_us: int  # ΔF: a table with a larger lag is late
    response_us: int  # Θ
    jitter_us: int = 0  # J of its feed
    finding_us: int = 0  # live: how long it takes to find a file, which is no outage
    phase_us: int = 0  # φ of its feed
    weight: Fraction = Fraction(1)
    source_bounds_us: tuple[int | None, ...] = ()  # A(V) of the tables that it reads
    align_us: int = 0  # of its windows

    @property
    def found_within_us(self) -> int:
        """How long after its due instant a file is found, at the latest."""
        return self.jitter_us + self.finding_us


@dataclass(slots=True)
class Recovery:
    """A recovery of a table, from the instant it entered recovery mode."""

    entered: int
    due: int | None  # the promised end; None if nothing is promised, or not yet
    ended: int | None = None

    @property
    def in_time(self) -> bool | None:
        """Whether it ended by then; None while that is open, or nothing was promised."""
        return None if self.due is None or self.ended is None else self.ended <= self.due
