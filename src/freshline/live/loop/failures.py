"""The failures in a row of one thing, and when to try it again."""

from __future__ import annotations

from dataclasses import dataclass

from freshline.base.back_off import back_off_us

# After so many the files themselves are looked at.
ATTEMPTS_MAX = 3


@dataclass(slots=True)
class FailureStreak:
    """The failures in a row: of a table's jobs, or of putting a file aside."""

    attempts: int = 0
    reason: str = ""

    def retry_at(self, now: int) -> int:
        """When to try again."""
        return now + back_off_us(self.attempts)
