"""The files of a healthy feed (paper 001, section II)."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from freshline.definitions.sections.feeds import Feed
from freshline.kernel.tables.events import DataFile
from freshline.simulation.arrivals import FeedArrivals


@given(
    period=st.integers(1, 10_000),
    phase=st.integers(0, 30_000),
    jitter_share=st.floats(0, 1),
    timestamp_jitter=st.integers(0, 30_000),
    seed=st.integers(0, 100),
)
def test_files_are_late_by_at_most_the_jitter_and_old_by_at_most_the_timestamp_jitter(
    period, phase, jitter_share, timestamp_jitter, seed
):
    jitter = int(jitter_share * period)
    arrivals = FeedArrivals(Feed("f", "files", period, phase, jitter, timestamp_jitter), seed)
    files = [arrivals.next() for _ in range(30)]
    for number, (at, file) in enumerate(files):
        due = phase + number * period
        assert due <= at <= due + jitter
        assert max(0, at - timestamp_jitter) <= file.timestamp <= at
    for (at, file), (next_at, next_file) in pairwise(files):
        assert at <= next_at
        assert file.timestamp <= next_file.timestamp


def test_a_feed_without_jitter_is_strictly_periodic():
    arrivals = FeedArrivals(Feed("f", "files", 10, 3), seed=1)
    files = [(3, DataFile(3, 1)), (13, DataFile(13, 2)), (23, DataFile(23, 3))]
    assert [arrivals.next() for _ in range(3)] == files
