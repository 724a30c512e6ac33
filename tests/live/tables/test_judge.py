"""What the end of an update means, and what is remembered of it."""

import pytest

from freshline.base.duration import SECOND
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import JobFailed
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.live.loop.messages import FileFound, JobEnded
from freshline.live.tables.file_to_load import FileToLoad
from freshline.live.tables.run_records import RunRecords
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.planning.plan.make import make_plan
from freshline.spark.errors import SparkEnded
from freshline.spark.loading.load import FileFacts
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.files import ConsumedFile
from freshline.testing.builder import Builder

NOW = 100 * SECOND


class Judged:
    """A table with a job that runs, and what the judge says of its end."""

    def __init__(self, warmth: WarmPlans | None = None) -> None:
        plan = make_plan(Builder().files("a", period=10, cost=2).build())
        self.kernel = assemble(plan, NOW, {"a": 50 * SECOND})
        self.stopped: list[str] = []
        self.loaded: list[tuple[str, list[str]]] = []
        self.keeper = RunRecords(plan.warehouse, plan, "run", NOW, self.stopped.append, warmth=warmth)
        self.keeper.judge.on_loaded = lambda table, names: self.loaded.append((table, names))
        facts = FileFacts(ConsumedFile("90.csv", 1, 1, "x"), 1, None, None)
        file = FileToLoad(90 * SECOND, "90.csv", facts)
        (start,) = self.kernel.handle(NOW, [FileArrived("a", file)])
        self.job = start.job

    def end(self, outcome, after_s: int = 1):
        at = NOW + after_s * SECOND
        return JobEnded(self.job, outcome, at, self.keeper.judge).event(self.keeper.observation, at)


def committed(rows: int) -> LoadResult:
    return LoadResult(90 * SECOND, rows=rows, rows_late=0, version=1, consumed=())


def test_an_update_that_committed_makes_its_table_as_fresh_as_it_says():
    judged = Judged()
    event = judged.end(committed(5))
    assert isinstance(event, UpdateFinished)
    assert (event.job, event.freshness) == (judged.job, 90 * SECOND)
    seen = judged.keeper.observation.tables["a"]
    assert (seen.rows, seen.rows_late, seen.jobs) == (5, 0, 1)
    assert seen.staleness_max_us == 51 * SECOND  # just before
    assert judged.loaded == [("a", ["90.csv"])]
    assert (judged.keeper.notes.lines, judged.stopped) == ([], [])


def test_an_update_whose_files_were_put_aside_leaves_its_table_as_it_was():
    judged = Judged()
    event = judged.end(None)
    assert isinstance(event, UpdateFinished)
    assert event.freshness == 50 * SECOND
    assert judged.keeper.observation.tables["a"].jobs == 0
    assert judged.loaded == [("a", ["90.csv"])]


def test_one_that_took_longer_than_assumed_is_noted():
    judged = Judged()
    judged.end(committed(5), after_s=3)
    assert judged.keeper.notes.lines == ["+3s a: an update took 3s, more than the assumed 2s"]


def test_failures_are_counted_until_one_succeeds_and_each_is_tried_again_later_than_the_last():
    judged = Judged()
    troubles, waits = judged.keeper.troubles, []
    for attempt in (1, 2, 3):
        assert troubles.attempts("a") == attempt - 1
        event = judged.end(OSError("no such device"))
        assert isinstance(event, JobFailed)
        waits.append(event.retry_at - NOW - SECOND)
    assert waits == sorted(set(waits))
    assert troubles.reason("a") == "no such device"
    (table,) = judged.keeper.look(NOW + SECOND, judged.kernel).tables
    assert (table.state, table.message) == ("FAILED", "no such device")
    assert judged.keeper.notes.lines[-1] == "+1s a: attempt 3 failed: no such device"
    assert judged.loaded == []
    judged.end(committed(5))
    assert (troubles.attempts("a"), troubles.reason("a")) == (0, None)
    assert judged.keeper.observation.tables["a"].recovering  # what piled up has a known reason


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TableTaken("somebody else's"), "another runner wrote to table a: this one stops"),
        (SparkEnded("it was stopped"), "Spark has ended: it was stopped"),
    ],
)
def test_what_no_other_attempt_helps_with_stops_the_run(error, why):
    judged = Judged()
    assert isinstance(judged.end(error), JobFailed)
    assert judged.stopped == [why]


@pytest.mark.parametrize(
    ("warm_at", "asserted"), [(None, False), (NOW + 1, False), (NOW, True), (NOW - SECOND, True)]
)
def test_a_bound_counts_after_an_update_that_was_warm_from_its_start_on(warm_at: int | None, asserted: bool):
    warmth = WarmPlans([("a",)])
    judged = Judged(warmth)
    if warm_at is not None:
        warmth.warmed("a", warm_at)
    judged.end(committed(5))
    assert ("a" in judged.keeper.observation.asserted) is asserted
    assert warmth.was_warm("a", NOW + SECOND)  # now an update has been through its plan


def test_a_bound_counts_from_the_next_update_on_where_the_first_had_to_warm_the_plan():
    judged = Judged(WarmPlans([("other", "a")]))
    event = judged.end(committed(5))
    assert isinstance(event, UpdateFinished)
    at = NOW + 10 * SECOND
    assert judged.kernel.handle(NOW + SECOND, [event]) == []
    landed = FileFound("a", DataFile(at, "new.csv"), frozenset({"a"}), at)
    (start,) = judged.kernel.handle(at, [landed.event(judged.keeper.observation, at)])
    outcome = LoadResult(at, rows=5, rows_late=0, version=2, consumed=())
    JobEnded(start.job, outcome, at + SECOND, judged.keeper.judge).event(
        judged.keeper.observation, at + SECOND
    )
    assert judged.keeper.observation.asserted.since == {"a": at + SECOND}


def test_a_feed_whose_files_nobody_looks_for_yet_is_not_silent():
    warmth = WarmPlans([("a",)])
    judged = Judged(warmth)
    late = NOW + 1_000 * SECOND
    assert "silent" not in " ".join(judged.keeper.look(late, judged.kernel).broken_assumptions)
    warmth.gave_up("a")
    assert judged.keeper.look(late + SECOND, judged.kernel).broken_assumptions == ()
    said = judged.keeper.look(late + 1_000 * SECOND, judged.kernel).broken_assumptions
    assert said == ("+33m 20s feed a has gone silent",)
