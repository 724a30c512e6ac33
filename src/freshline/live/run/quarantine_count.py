"""Counts the files in quarantine every few seconds."""

from __future__ import annotations

from typing import Final

from freshline.base.duration import SECOND
from freshline.live.loop.run_notes import RunNotes
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.quarantine import Quarantine

_COUNT_EVERY_US: Final = 3 * SECOND


class QuarantineCount:
    """The quarantine of a run and its count, which changes when users take files out."""

    def __init__(self, layout: StorageLayout, given: Quarantine | None, notes: RunNotes) -> None:
        self.quarantine = given or Quarantine(layout.quarantine)
        self._recounts = given is None
        self._notes = notes
        self._count_at = notes.started
        notes.counted(len(self.quarantine.entries()))

    def look(self, now: int, at_once: bool) -> None:
        """Counts if a count is due, or at once."""
        if self._recounts and (now >= self._count_at or at_once):
            self._count_at = now + _COUNT_EVERY_US
            self._notes.counted(self.quarantine.count())
