"""Watches what outputs assume of a feed: rows of a file, age of its records, distance of its files."""

from __future__ import annotations

from freshline.base.duration import format_duration
from freshline.definitions.sections.feeds import Feed
from freshline.kernel.recovery.terms import FINDING_US
from freshline.spark.loading.load import FileFacts


class BurstWatch:
    """Compares a feed's files with its definition. A broken assumption is told once, until it holds again."""

    def __init__(self, feed: Feed) -> None:
        assert feed.period_us is not None
        self._feed = feed
        self._distance_us = feed.period_us - feed.jitter_us
        # A file is found up to that much after it came.
        self._finding_us = min(FINDING_US, feed.period_us // 4)
        self._last_arrival: int | None = None
        self._told: set[str] = set()

    def tell(self, arrival: int, facts: FileFacts, waited: bool) -> list[str]:
        """The notes on a file. One that `waited` for the run to begin is old for another reason."""
        feed = self._feed
        broken: dict[str, str | None] = {"burst": None, "age": None, "distance": None}
        if feed.rows_most is not None and facts.records > feed.rows_most:
            said = "burst" if feed.burst is not None else "rows"
            broken["burst"] = (
                f"a file had {facts.records} records, `{said}` says at most {int(feed.rows_most)}"
            )
        if facts.oldest is not None and arrival - facts.oldest > feed.oldest_us and not waited:
            age, declared = format_duration(arrival - facts.oldest), format_duration(feed.oldest_us)
            broken["age"] = (
                f"the oldest record of a file was {age} old when it was found, `age` is {declared}"
            )
        broken["distance"] = self._too_close(arrival, waited)
        new = [text for key, text in broken.items() if text is not None and key not in self._told]
        self._told = {key for key, text in broken.items() if text is not None}
        return [f"feed {feed.name}: {text}" for text in new]

    def _too_close(self, arrival: int, waited: bool) -> str | None:
        last, self._last_arrival = self._last_arrival, max(arrival, self._last_arrival or arrival)
        if last is None or waited or arrival - last >= self._distance_us - self._finding_us:
            return None
        came, least = format_duration(max(0, arrival - last)), format_duration(self._distance_us)
        return f"a file came {came} after the one before, `period` and `jitter` say at least {least}"
