"""What outputs assume of their feeds is watched, and told once when it breaks."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.definitions.load import loads
from freshline.definitions.sections.feeds import Feed
from freshline.live.loop.messages import FileFound
from freshline.live.loop.run_notes import RunNotes
from freshline.live.tables.burst_watch import BurstWatch
from freshline.live.tables.file_to_load import FileToLoad
from freshline.live.tables.observation import LiveObservation
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.planning.plan.make import make_plan
from freshline.spark.loading.load import FileFacts
from freshline.storage.delta.files import ConsumedFile

FEED = Feed("speeds", "files", 10 * SECOND, jitter_us=SECOND, age_us=5 * SECOND, burst=20)
TEXT = """
name: alerts
nodes: {here: {}}
feeds: {speeds: {period: 10s, jitter: 1s, age: 5s, burst: 20}}
tables: {alerts: {feed: speeds, deadline: 20s, cost: {startup: 1s}}}
"""


def facts(records: int, oldest: int) -> FileFacts:
    return FileFacts(ConsumedFile("a.csv", 1, 1, "x"), records, oldest, None)


@given(st.lists(st.tuples(st.integers(0, 2_000_000), st.integers(0, 5 * SECOND), st.integers(0, 20))))
def test_files_as_declared_break_nothing(files: list[tuple[int, int, int]]) -> None:
    watch, at = BurstWatch(FEED), 0
    for more_us, age_us, records in files:
        at += 9 * SECOND + more_us
        assert watch.tell(at, facts(records, at - age_us), waited=False) == []


def test_each_assumption_that_breaks_is_told_once_until_it_holds_again() -> None:
    watch, usual = BurstWatch(FEED), facts(20, 0)
    at = 100 * SECOND

    def told(after_s: int, records: int = 20, age_s: int = 5) -> list[str]:
        nonlocal at
        at += after_s * SECOND
        return watch.tell(at, replace(usual, records=records, oldest=at - age_s * SECOND), waited=False)

    assert told(0) == []
    many = "feed speeds: a file had 21 records, `burst` says at most 20"
    old = "feed speeds: the oldest record of a file was 6s old when it was found, `age` is 5s"
    close = "feed speeds: a file came 2s after the one before, `period` and `jitter` say at least 9s"
    assert told(2, 21, 6) == [many, old, close]
    assert told(2, 30, 60) == []
    assert told(10) == []
    assert told(10, records=21) == [many]


def test_a_run_notes_them() -> None:
    warehouse, notes = loads(TEXT), RunNotes(0)
    observation = LiveObservation(warehouse, make_plan(warehouse), 0, notes, WarmPlans())
    file = FileToLoad(90 * SECOND, "a.csv", facts(21, 99 * SECOND))
    observation.landed(FileFound("speeds", file, frozenset({"alerts"}), 100 * SECOND))
    assert any("a file had 21 records, `burst` says at most 20" in line for line in notes.lines)
