"""Counts failures in a row, and computes the time of the next retry."""

from __future__ import annotations

from dataclasses import dataclass

from freshline.base.back_off import back_off_us

# After this many failures the files are tried one by one.
ATTEMPTS_MAX = 3


@dataclass(slots=True)
class FailureStreak:
    """The failures in a row of a table's jobs, or of moving a file into quarantine."""

    attempts: int = 0
    reason: str = ""

    def retry_at(self, now: int) -> int:
        return now + back_off_us(self.attempts)
