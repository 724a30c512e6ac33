"""Jobs of several steps: each committed once, whatever fails in between."""

import itertools
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.definitions.load import load
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import JobFailed
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.steps.events import StepsCommitted as StepsCommitted
from freshline.kernel.steps.events import StepsDropped
from freshline.kernel.steps.job import StepJob
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.live.loop.messages import JobEnded
from freshline.live.loop.run_notes import RunNotes
from freshline.live.nodes.node_join import make_placement
from freshline.live.nodes.step_figures import NO_ROWS, CommittedStep, StepFigures
from freshline.live.nodes.step_status import STEPS as STEP_SECTION
from freshline.live.nodes.step_worker import StepJudge, StepWorker
from freshline.live.tables.file_to_load import FileToLoad
from freshline.live.tables.judge import FailureCounts, LoadFailures
from freshline.live.tables.node_share import part_of
from freshline.planning.plan.make import make_plan
from freshline.spark.loading.load import FileFacts, Load
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.stored_table import StoredTable
from freshline_lab.campaigns.kills.node_kills import write_node_project

S = 1_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC"))])
STEPS = ("readings", "high", "near")


class Commits:
    """Stands for a track's Spark: commits what it is told to, but for what is to fail."""

    def __init__(self, tables: dict[str, StoredTable]) -> None:
        self.tables = tables
        self.done: list[tuple[str, int, int, bool]] = []
        self.fails: str | None = None
        self.out_of_reach: set[object] = set()  # names of files

    def load(self, load: Load) -> LoadResult | None:
        name = load.table
        if not self.out_of_reach.isdisjoint(file.facts.consumed.name for file in load.files):
            return None
        if name == self.fails:
            self.fails = None
            raise OSError("no space left")
        version = self.tables[name].commit(None, load.to, (), {})
        self.done.append((name, load.after, load.to, load.is_first))
        return LoadResult(load.to, 0, 0, version, ())


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    warehouse = load(write_node_project(tmp_path / "project"))
    plan = replace(make_plan(warehouse), placed=make_placement(warehouse))
    return assemble(plan, 0, dict.fromkeys(warehouse.steps), node="edge")


@pytest.fixture
def commits(tmp_path: Path) -> Commits:
    return Commits({name: StoredTable.open_or_create(tmp_path / name, name, SCHEMA, "ts") for name in STEPS})


def judge(kernel: Kernel, warehouse_folder: Path, notes: RunNotes | None = None) -> StepJudge:
    warehouse = load(warehouse_folder / "freshline.yml")
    troubles = FailureCounts()
    local = part_of(warehouse, "edge", {**dict.fromkeys(STEPS, "edge"), "alerts": "centre"}).local
    notes = notes or RunNotes(0)
    failures = LoadFailures(troubles, notes, lambda why: None)
    return StepJudge(StepFigures(local, "edge", troubles), failures, notes)


def found(timestamp: int, name: str) -> FileToLoad:
    return FileToLoad(timestamp, name, FileFacts(ConsumedFile(name, 1, 1, "x"), 1, None, None))


def started(kernel: Kernel, at: int, *events) -> StepJob:
    (start,) = kernel.handle(at, events)
    assert isinstance(start.job, StepJob)
    return start.job


def test_a_step_that_is_committed_is_not_done_again_when_the_job_is(
    kernel: Kernel, commits: Commits, tmp_path: Path
) -> None:
    job = started(kernel, 10 * S, FileArrived("readings", found(5 * S, "a.csv")))
    assert [part.name for part in job.parts] == ["readings", "high"]
    clock = itertools.count(11 * S, S)
    worker = StepWorker(commits, commits.tables, {"near"}, lambda: next(clock))
    judging = judge(kernel, tmp_path / "project")
    commits.fails = "high"
    with pytest.raises(OSError, match="no space") as caught:
        worker.run(job)
    failed = judging.judge(JobEnded(job, caught.value, 11 * S, judging), 11 * S)
    assert isinstance(failed, JobFailed)
    kernel.handle(11 * S, [failed])
    again = started(kernel, failed.retry_at)
    outcome = worker.run(again)
    assert commits.done == [("readings", 0, 5 * S, True), ("high", 0, 5 * S, True)]
    assert [done.committed is None for done in outcome] == [False, False], "the first counts as it was"
    assert [done.at for done in outcome] == [12 * S, 15 * S]
    after = started(kernel, 20 * S, judging.judge(JobEnded(again, outcome, 20 * S, judging), 20 * S))
    assert [(part.name, part.loaded_to) for part in after.parts] == [("near", 5 * S)]


def test_the_end_of_a_job_tells_the_rows_of_each_of_its_steps(
    kernel: Kernel, commits: Commits, tmp_path: Path
) -> None:
    """Of a step that was committed before this run, nothing is known that its files do not say."""
    job = started(kernel, 10 * S, FileArrived("readings", found(5 * S, "a.csv")))
    judging = judge(kernel, tmp_path / "project")
    told: list[tuple[str, int, int, int]] = []
    judging.on_committed = lambda *rows: told.append(rows)
    results = (LoadResult(6 * S, 12, 0, 1, ()), None)
    outcome = tuple(
        CommittedStep(part, result, 11 * S, NO_ROWS) for part, result in zip(job.parts, results, strict=True)
    )
    judging.judge(JobEnded(job, outcome, 11 * S, judging), 11 * S)
    assert told == [("readings", 0, 6 * S, 12)]


def test_a_step_that_takes_longer_than_was_planned_is_noted(
    kernel: Kernel, commits: Commits, tmp_path: Path
) -> None:
    job = started(kernel, 10 * S, FileArrived("readings", found(5 * S, "a.csv")))
    costs_us = [part.step.terms.cost_us for part in job.parts]
    notes = RunNotes(0)
    judging = judge(kernel, tmp_path / "project", notes)
    first_at = job.start + costs_us[0]
    for late_us, noted in ((0, 0), (1, 1)):
        ends = (first_at, first_at + costs_us[1] + late_us)
        done = [CommittedStep(part, None, at, NO_ROWS) for part, at in zip(job.parts, ends, strict=True)]
        judging.judge(JobEnded(job, tuple(done), ends[-1], judging), ends[-1])
        assert len(notes.lines) == noted
    assert "high: an update took" in notes.lines[0]


def test_files_of_one_timestamp_are_each_committed(kernel: Kernel, commits: Commits) -> None:
    worker = StepWorker(commits, commits.tables, (), lambda: 11 * S)
    arrived = [FileArrived("readings", found(5 * S, name)) for name in ("a.csv", "b.csv")]
    job = started(kernel, 10 * S, *arrived)
    worker.run(job)
    reading = [part for part in job.parts if part.name == "readings"]
    assert [part.files[0].name for part in reading] == ["a.csv"]
    again = job.parts[0].instance._replace(files=(found(5 * S, "b.csv"),), loaded_from=5 * S)
    done = worker.run(StepJob(job.task, 2, (job.parts[0]._replace(instance=again),), 12 * S, 0))
    assert done[0].committed is not None


def test_a_file_that_is_out_of_reach_makes_nothing_fresher_so_that_its_rows_are_not_late_when_it_is_back(
    kernel: Kernel, commits: Commits, tmp_path: Path
) -> None:
    worker = StepWorker(commits, commits.tables, (), lambda: 11 * S)
    judging = judge(kernel, tmp_path / "project")
    over: list[tuple[str, list[str]]] = []
    judging.on_loaded = lambda table, names: over.append((table, [*names]))
    commits.out_of_reach = {"gone.csv"}
    arrived = [
        FileArrived("readings", found(at * S, name)) for at, name in ((5, "gone.csv"), (7, "next.csv"))
    ]
    job = started(kernel, 10 * S, *arrived)
    outcome = worker.run(job)
    assert outcome is None
    event = judging.judge(JobEnded(job, outcome, 11 * S, judging), 11 * S)
    assert repr(StepsDropped.from_record(event.record(), kernel)) == repr(event)
    job = started(kernel, 11 * S, event, FileArrived("readings", found(5 * S, "gone.csv")))
    validate(kernel)
    assert over == [("readings", ["gone.csv"])]
    ranges = [(part.name, part.loaded_from, part.loaded_to) for part in job.parts]
    assert ranges == [("readings", 0, 7 * S)]
    assert commits.tables["readings"].freshness is None
    (waiting,) = kernel.task("readings").waiting
    assert (waiting.loaded_from, waiting.loaded_to) == (7 * S, 7 * S)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.sets(st.integers(0, 7)))
def test_of_whatever_files_are_dropped_the_others_are_loaded_as_if_these_had_never_come(
    timestamps: list[int], dropped: set[int]
) -> None:
    with TemporaryDirectory() as folder:
        warehouse = load(write_node_project(Path(folder)))
    files = [DataFile(at * S, str(number)) for number, at in enumerate(timestamps)]
    plan = replace(make_plan(warehouse), placed=make_placement(warehouse))

    def loaded(come: list[DataFile], drop: set[object]) -> list[tuple[object, int, int]]:
        kernel = assemble(plan, 0, node="edge")
        said, ranges = kernel.handle(10 * S, [FileArrived("readings", file) for file in come]), []
        while said:
            job = said[0].job
            validate(kernel)
            part = job.parts[0]
            if part.files and part.files[0].name in drop:
                said = kernel.handle(11 * S, [StepsDropped(job)])
                continue
            if part.files:
                ranges.append((part.files[0].name, part.loaded_from, part.loaded_to))
            said = kernel.handle(11 * S, [StepsCommitted(job)])
        return ranges

    gone = {file.name for number, file in enumerate(files) if number in dropped}
    assert loaded(files, gone) == loaded([file for file in files if file.name not in gone], set())


def test_rows_are_counted_by_how_old_they_were(kernel: Kernel, tmp_path: Path) -> None:
    warehouse = load(tmp_path / "project" / "freshline.yml")
    part = part_of(warehouse, "edge", {**dict.fromkeys(STEPS, "edge"), "alerts": "centre"})
    assert (part.followed, [*part.local.steps], [*part.local.feeds]) == ({}, [*STEPS], ["readings"])
    book = StepFigures(part.local, "edge", FailureCounts())
    job = started(kernel, 10 * S, FileArrived("readings", found(5 * S, "a.csv")))
    near = job.parts[0]._replace(step=kernel.task("near"))
    committed = LoadResult(5 * S, 3, 0, 1, ())
    ages = np.array([1, 2, 30]) * S
    book.done(CommittedStep(near, committed, 40 * S, 40 * S - ages))
    book.done(CommittedStep(near, None, 10 * S, NO_ROWS))
    (output,) = book.outputs()
    assert (output.name, output.rows, output.misses, output.max_us) == ("near", 3, 1, 30 * S)
    steps = {step.name: step for step in book.steps(kernel)}
    assert (steps["near"].rows, steps["near"].misses, steps["near"].backlog) == (3, 1, 0)
    assert (steps["readings"].backlog, steps["readings"].freshness_us) == (1, None)


def test_a_step_with_many_late_rows_is_warned_of_once(
    kernel: Kernel, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    notes = RunNotes(0)
    judging = judge(kernel, tmp_path / "project", notes)
    job = started(kernel, 10 * S, FileArrived("readings", found(5 * S, "a.csv")))
    part = job.parts[0]
    late = FileToLoad(5 * S, "b.csv", FileFacts(ConsumedFile("b.csv", 1, 1, "x"), 9, 3 * S, 5 * S))
    part = part._replace(instance=part.instance._replace(loaded_from=5 * S, files=(late,)))
    for at in (11 * S, 12 * S):
        outcome = (CommittedStep(part, LoadResult(5 * S, 10, 2, 1, ()), at, NO_ROWS),)
        judging.judge(JobEnded(job, outcome, at, judging), at)
    warning = (
        "readings: 2 of 10 rows (20.0%) came late, and derived tables lack them until `freshline rebuild`: "
        "`lateness: 3s` of feed readings would have caught them"
    )
    assert [note for note in notes.lines if "came late" in note] == [f"+11s {warning}"]
    assert caplog.text.count(warning) == 1
    (row,) = [row for row in judging._book.steps(kernel) if row.name == "readings"]
    now = warning.replace("2 of 10", "4 of 20")
    assert (row.late_warning, row.record()["late_warning"]) == (now, now)
    assert STEP_SECTION.lines([row], 12 * S)["Messages"] == [now]
    assert STEP_SECTION.verdict_lines([row], 12 * S) == [f"[yellow]Late[/]: {now}."]


def test_the_other_node_follows_what_it_reads(tmp_path: Path, kernel: Kernel) -> None:
    warehouse = load(tmp_path / "project" / "freshline.yml")
    part = part_of(warehouse, "centre", {**dict.fromkeys(STEPS, "edge"), "alerts": "centre"})
    assert (part.followed, [*part.local.steps], [*part.local.feeds]) == ({"high": "edge"}, ["alerts"], [])
