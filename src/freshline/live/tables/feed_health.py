"""Detects a feed that is silent, brings nothing to load, or brings old data (paper 001, Definition 2)."""

from __future__ import annotations

from freshline.base.duration import format_duration
from freshline.definitions.sections.feeds import Feed
from freshline.kernel.recovery.terms import FINDING_US


class FeedHealth:
    """The state of one feed according to its files."""

    def __init__(self, feed: Feed, started: int) -> None:
        assert feed.period_us is not None
        self._feed = feed
        self._overdue_us = feed.period_us + feed.jitter_us + FINDING_US
        self._pace_us = feed.period_us // 2
        self._age_max_us = feed.jitter_us + feed.timestamp_jitter_us + feed.landing.lateness_us + FINDING_US
        self._started = started
        self.first_came: int | None = None  # the arrival of its first file, loaded or rejected
        self.last_arrival = started
        self._last_empty = started
        self._newest = 0
        self._silence_told = False
        self._age_us = 0
        self._age_told = False
        self._piled_up = False  # whether its last file arrived right after the one before

    @property
    def name(self) -> str:
        return self._feed.name

    def came(self, at: int) -> None:
        """Records the arrival of a file with records, or of one that should have some."""
        if self.first_came is None:
            self.first_came = max(at, self._started)

    def landed(self, arrival: int, timestamp: int) -> None:
        """Records a file with records."""
        self._piled_up = arrival - self.last_arrival < self._pace_us
        # Files that were found together are reported by their timestamps, not in the order of arrival.
        self.last_arrival = max(arrival, self.last_arrival)
        # A single late file is no sign of old data.
        self._newest = max(timestamp, self._newest)
        self._age_us = arrival - self._newest
        self._silence_told = False

    def empty(self, at: int) -> None:
        """Records a file without records: the feed is alive, but no table becomes fresher."""
        self._last_empty = at
        self._silence_told = False

    def not_looked_for(self, at: int) -> None:
        """Records that its files are not searched for yet: it is not silent."""
        self.last_arrival = self._last_empty = at

    def is_silent(self, now: int) -> bool:
        """Whether it brings no files, not even empty ones."""
        return now - max(self.last_arrival, self._last_empty) > self._overdue_us

    def is_dry(self, now: int) -> bool:
        """Whether it brings nothing to load: then no bound holds."""
        return now - self.last_arrival > self._overdue_us

    @property
    def is_old(self) -> bool:
        """Whether it brings only old data, even if in time: then no bound holds either."""
        return self._age_us > self._age_max_us

    def tell_silence(self, now: int) -> str | None:
        """The note when it falls silent, once."""
        if self._silence_told or not self.is_silent(now):
            return None
        self._silence_told = True
        return f"feed {self.name} has gone silent"

    def tell_age(self) -> str | None:
        """The note when its data is old, once until it is not. A backlog does not count: it is old anyway."""
        if self._piled_up:
            return None
        told, self._age_told = self._age_told, self.is_old
        if told or not self.is_old:
            return None
        age, declared = format_duration(self._age_us), format_duration(self._feed.timestamp_jitter_us)
        return (
            f"feed {self.name}: the newest record of a file was {age} old when it came, "
            f"timestamp_jitter says at most {declared}"
        )
