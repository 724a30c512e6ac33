"""Whether a feed is silent, brings nothing to load, or brings old data (paper 001, Definition 2)."""

from __future__ import annotations

from freshline.base.duration import format_duration
from freshline.definitions.sections.feeds import Feed
from freshline.kernel.recovery.terms import FINDING_US


class FeedHealth:
    """One feed, as far as its files tell."""

    def __init__(self, feed: Feed, started: int) -> None:
        assert feed.period_us is not None
        self._feed = feed
        self._overdue_us = feed.period_us + feed.jitter_us + FINDING_US
        self._pace_us = feed.period_us // 2
        self._age_max_us = feed.jitter_us + feed.timestamp_jitter_us + feed.landing.lateness_us + FINDING_US
        self._started = started
        self.first_came: int | None = None  # when its first file came, loaded or refused
        self.last_arrival = started
        self._last_empty = started
        self._newest = 0
        self._silence_told = False
        self._age_us = 0
        self._age_told = False
        self._piled_up = False  # whether its last file came right after the one before

    @property
    def name(self) -> str:
        return self._feed.name

    def came(self, at: int) -> None:
        """It brought something that has records, or should have."""
        if self.first_came is None:
            self.first_came = max(at, self._started)

    def landed(self, arrival: int, timestamp: int) -> None:
        """A file with records came."""
        self._piled_up = arrival - self.last_arrival < self._pace_us
        # Files that were found together come by their timestamps, not in the order in which they were found.
        self.last_arrival = max(arrival, self.last_arrival)
        # Files that are late by themselves are no sign of old data.
        self._newest = max(timestamp, self._newest)
        self._age_us = arrival - self._newest
        self._silence_told = False

    def empty(self, at: int) -> None:
        """A file without records came: a sign of life, though no table becomes fresher by it."""
        self._last_empty = at
        self._silence_told = False

    def not_looked_for(self, at: int) -> None:
        """Nobody looks for its files yet: it is not silent."""
        self.last_arrival = self._last_empty = at

    def is_silent(self, now: int) -> bool:
        """Whether it delivers nothing, not even empty files."""
        return now - max(self.last_arrival, self._last_empty) > self._overdue_us

    def is_dry(self, now: int) -> bool:
        """Whether it delivers nothing to load: then no bound holds."""
        return now - self.last_arrival > self._overdue_us

    @property
    def is_old(self) -> bool:
        """Whether it may be punctual and yet brings old data only: then no bound holds either."""
        return self._age_us > self._age_max_us

    def tell_silence(self, now: int) -> str | None:
        """What to note when it falls silent, once."""
        if self._silence_told or not self.is_silent(now):
            return None
        self._silence_told = True
        return f"feed {self.name} has gone silent"

    def tell_age(self) -> str | None:
        """What to note when its data is old, once until it is not. A backlog is old for another reason."""
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
