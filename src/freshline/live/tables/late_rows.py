"""Warns of a feed whose rows come late: derived tables lack them until a rebuild."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from freshline.base.duration import MILLISECOND, SECOND, format_duration
from freshline.definitions.sections.feeds import Feed
from freshline.kernel.tables.events import DataFile
from freshline.live.tables.file_to_load import files_to_load

# A larger share of late rows is no accident: the feed's `lateness` is too short.
_SHARE_MAX: Final = 0.001


@dataclass(slots=True)
class LateRows:
    """The late rows of a table or step during a run; `feed` is None if it loads no files."""

    table: str
    feed: Feed | None
    rows: int = 0
    late: int = 0
    lateness_us: int = 0  # the `lateness` that would have caught all of them

    def add(self, rows: int, late: int, loaded_from: int, files: Iterable[DataFile]) -> str | None:
        """Counts the rows of a load; returns the warning when a noticeable share has become late."""
        told = self.warning
        self.rows += rows
        self.late += late
        if late and self.feed is not None:
            oldest = [file.facts.oldest for file in files_to_load(files) if file.facts.oldest is not None]
            # A record at the freshness is late too.
            newest = loaded_from + self.feed.landing.lateness_us
            self.lateness_us = max(self.lateness_us, newest - min(oldest, default=newest) + 1)
        return self.warning if told is None else None

    @property
    def warning(self) -> str | None:
        """The present warning, if a noticeable share is late."""
        if self.feed is None or not is_much_late(self.late, self.rows, self.lateness_us):
            return None
        return late_sentence(self.table, self.feed.name, self.late, self.rows, self.lateness_us)


def is_much_late(late: int, rows: int, lateness_us: int) -> bool:
    """Whether more than one in a thousand rows was late, by a known time."""
    return lateness_us > 0 and late > rows * _SHARE_MAX


def late_sentence(table: str, feed: str, late: int, rows: int, lateness_us: int) -> str:
    """What is lost by late rows, and the `lateness` that would have caught them."""
    unit = SECOND if lateness_us > SECOND else MILLISECOND
    enough = format_duration(-(-lateness_us // unit) * unit)
    return (
        f"{table}: {late:,} of {rows:,} rows ({late / rows:.1%}) came late, and derived tables lack them "
        f"until `freshline rebuild`: `lateness: {enough}` of feed {feed} would have caught them"
    )
