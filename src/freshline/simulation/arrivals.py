"""Arrivals of a simulated feed's data files."""

from __future__ import annotations

import random

from freshline.definitions.sections.feeds import Feed
from freshline.kernel.tables.events import DataFile


class FeedArrivals:
    """The files of one healthy feed, one after another (paper 001, section II).

    File j is due at φ + (j − 1)·p and arrives late by up to the jitter. Its newest record is older than its
    arrival by up to the timestamp jitter, but never older than the previous file. Its timestamp is that of
    its newest record less the feed's lateness.
    """

    __slots__ = ("_due", "_feed", "_file", "_newest", "_random")

    def __init__(self, feed: Feed, seed: int) -> None:
        assert feed.arrival == "files"
        assert feed.period_us is not None
        self._feed = feed
        self._random = random.Random(f"feed:{seed}:{feed.name}")
        self._due = feed.phase_us
        self._file = 0
        self._newest = 0

    def next(self) -> tuple[int, DataFile]:
        """The instant at which the next file arrives, and the file."""
        feed = self._feed
        arrival = self._due + (self._random.randint(0, feed.jitter_us) if feed.jitter_us else 0)
        age = self._random.randint(0, feed.timestamp_jitter_us) if feed.timestamp_jitter_us else 0
        self._newest = max(self._newest, arrival - age - feed.landing.lateness_us)
        self._file += 1
        assert feed.period_us is not None
        self._due += feed.period_us
        return arrival, DataFile(self._newest, self._file)
