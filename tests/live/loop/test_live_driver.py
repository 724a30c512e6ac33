"""The live loop with real threads and a stand-in for Spark: what ends is told, what is said is done."""

import io
import json
import threading
import time
from collections.abc import Iterator

import pytest

from freshline.base.clock import clock
from freshline.base.duration import DAY, SECOND
from freshline.definitions.language.policies import policies_for
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import replay
from freshline.kernel.assembly.terms import learned
from freshline.kernel.core.events import JobFailed
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.tables.drain import DrainBegun, nothing_is_left, only_rest_is_left
from freshline.kernel.tables.events import DataFile, UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.live.loop.driver import LiveDriver, LoopHooks
from freshline.live.loop.kinds import JobKind
from freshline.live.loop.messages import FileFound, Inbox, JobEnded
from freshline.live.loop.tracks import Tracks
from freshline.planning.plan.make import make_plan, without_bounds
from freshline.testing.builder import Builder
from patience import PATIENCE_S, PATIENCE_US

pytestmark = pytest.mark.usefixtures("short_waits")


class Judge(LoopHooks):
    """Finished where the worker returned, tried again at once where it raised."""

    def __init__(self) -> None:
        self.ended: list[JobEnded] = []
        self.heard: list[str] = []  # files
        self.stop_after = 0
        self.driver: LiveDriver | None = None

    def landed(self, landed):
        self.heard.append(landed.file.name)

    def judge(self, ended, now):
        self.ended.append(ended)
        files = sum(len(end.job.files) for end in self.ended)  # a job may take several
        if self.driver is not None and files >= self.stop_after:
            self.driver.stop()
        if isinstance(ended.outcome, BaseException):
            return JobFailed(ended.job, now)
        return UpdateFinished(ended.job, ended.job.loaded_to)


def kinds(worker, judge):
    return {Update: JobKind(lambda track: worker, judge)}


def driver_of(kernel, inbox, judge, tracks, journal):
    return LiveDriver(kernel, inbox, tracks, journal, judge, judge)


def run(plan, worker, files, ends):
    """Runs until jobs of so many files have ended; returns judge, journal's lines and the kernel."""
    start = clock()
    kernel = assemble(plan, start, {table.name: None for table in plan.tables})
    judge = Judge()
    judge.stop_after = ends
    stream = io.StringIO()
    journal = Journal(stream, {"now": start})
    inbox = Inbox()
    driver = driver_of(kernel, inbox, judge, Tracks(2, kinds(worker, judge), inbox.post), journal)
    judge.driver = driver
    for feed, timestamp, name in files:
        inbox.post(FileFound(feed, DataFile(timestamp, name), frozenset({feed}), start))
    assert driver.run(start + PATIENCE_US)
    assert not any(task.job for task in kernel.tasks)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    kernel.handle(max(kernel.now, clock()), [])  # what closing left undone
    validate(kernel)
    return judge, lines, start


class Instant:
    def run(self, job):
        return job.loaded_to


def test_jobs_run_and_their_log_replays_identically():
    plan = make_plan(Builder(tracks=2).files("a", period=1).files("b", period=1).build())
    files = [(feed, 1_000 * (number + 1), f"{number}") for number in range(5) for feed in ("a", "b")]
    judge, lines, start = run(plan, Instant(), files, ends=10)
    loaded = [(end.job.task.name, file.name) for end in judge.ended for file in end.job.files]
    assert sorted(loaded) == sorted((feed, name) for feed, _, name in files)
    assert sorted(judge.heard) == sorted(name for _, _, name in files)
    kernel = assemble(plan, start, {"a": None, "b": None})
    assert replay(kernel, lines[1:]) == (len(lines) - 1, None)


def test_what_is_found_out_at_a_tick_is_told_to_the_kernel_and_replays_identically():
    warehouse = Builder(tracks=2, policy="aus").files("a", period=1).build()
    unknown = without_bounds(make_plan(warehouse), frozenset({"a"}))
    start = clock()
    kernel = assemble(unknown, start, {"a": None})
    stream = io.StringIO()

    class Learns(Judge):
        def tick(self, now, kernel):
            told = learned(kernel, make_plan(warehouse))
            if told.tables:
                driver.tell(told)
            else:
                driver.stop()

    journal = Journal(stream, {"now": start})
    judge, inbox = Learns(), Inbox()
    driver = driver_of(kernel, inbox, judge, Tracks(2, kinds(Instant(), judge), inbox.post), journal)
    inbox.post(FileFound("a", DataFile(1_000, "1"), frozenset({"a"}), start))
    assert driver.run(start + PATIENCE_US)
    assert isinstance(kernel.tasks[0].rule, AdaptiveRelease)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()][1:]
    assert sum("learned" in event for line in lines for event in line.get("events", ())) == 1
    assert replay(assemble(unknown, start, {"a": None}), lines) == (len(lines), None)


@pytest.mark.parametrize("policy", sorted(policies_for("tables")))
def test_a_run_that_drains_waits_for_no_period_and_its_log_replays_identically(policy):
    plan = make_plan(
        Builder(tracks=2, policy=policy)
        .files("a", period=0.2)
        .derived("daily", ["a"], period=DAY // SECOND)
        .derived("over", ["daily", "a"], period=2 * DAY // SECOND)
        .build()
    )
    start = clock()
    fresh = dict.fromkeys(["a", "daily", "over"], start - 10 * SECOND)
    kernel, inbox, stream = assemble(plan, start, fresh), Inbox(), io.StringIO()

    class Drains(Judge):
        """Tells it when all files are loaded; then it goes on until nothing is left."""

        told = False

        def tick(self, now, kernel):
            if len(self.heard) < 3 or not only_rest_is_left(kernel):
                return
            if not self.told:
                self.told = True
                driver.tell(DrainBegun())
            elif nothing_is_left(kernel, lambda table: False):
                driver.stop()

    judge, journal = Drains(), Journal(stream, {"now": start})
    driver = driver_of(kernel, inbox, judge, Tracks(2, kinds(Instant(), judge), inbox.post), journal)
    for number in (3, 2, 1):
        file = DataFile(start - number * SECOND, f"{number}")
        inbox.post(FileFound("a", file, frozenset({"a"}), start))
    assert driver.run(start + PATIENCE_US)
    assert clock() < start + PATIENCE_US  # it was stopped
    assert {task.freshness for task in kernel.tasks} == {start - SECOND}
    lines = [json.loads(line) for line in stream.getvalue().splitlines()][1:]
    assert sum("drain" in event for line in lines for event in line.get("events", ())) == 1
    again = assemble(plan, start, fresh)
    assert replay(again, lines) == (len(lines), None)
    assert {task.freshness for task in again.tasks} == {start - SECOND}


def test_two_tracks_run_two_jobs_at_once():
    plan = make_plan(Builder(tracks=2).files("a", period=1).files("b", period=1).build())
    meeting = threading.Barrier(2, timeout=PATIENCE_S)

    class Meets:
        def run(self, job):
            meeting.wait()

    judge, _, _ = run(plan, Meets(), [("a", 1, "1"), ("b", 1, "1")], ends=2)
    assert [end.outcome for end in judge.ended] == [None, None]


def test_a_job_that_raises_is_tried_again():
    plan = make_plan(Builder(tracks=2).files("a", period=1).build())
    attempts = []

    class Stumbles:
        def run(self, job):
            attempts.append(job.number)
            if len(attempts) < 3:
                raise OSError("disk full")

    judge, _, _ = run(plan, Stumbles(), [("a", 1, "1")], ends=3)
    assert attempts == [1, 2, 3]
    assert [str(end.outcome) for end in judge.ended] == ["disk full", "disk full", "None"]


def test_stopping_lets_running_jobs_end_and_starts_no_more():
    plan = make_plan(Builder(tracks=1).files("a", period=1).build())

    class Slow:
        def run(self, job):
            time.sleep(0.2)

    judge, _, _ = run(plan, Slow(), [("a", 1, "1"), ("a", 2, "2"), ("a", 3, "3")], ends=1)
    assert len(judge.ended) <= 2


def test_the_end_of_a_job_during_closing_is_told_and_replays_identically():
    plan = make_plan(Builder(tracks=1).files("a", period=1).build())

    loop_is_over = threading.Event()

    class Closing(Tracks):
        def close(self, timeout_s):
            loop_is_over.set()
            return super().close(timeout_s)

    class EndsLater:
        driver: LiveDriver

        def run(self, job):
            self.driver.stop()
            assert loop_is_over.wait(PATIENCE_S)

    start = clock()
    kernel = assemble(plan, start, {"a": None})
    worker, judge, stream = EndsLater(), Judge(), io.StringIO()
    journal = Journal(stream, {"now": start})
    inbox = Inbox()
    driver = driver_of(kernel, inbox, judge, Closing(1, kinds(worker, judge), inbox.post), journal)
    worker.driver = driver
    for number in (1, 2):
        file = DataFile(number, str(number))
        inbox.post(FileFound("a", file, frozenset({"a"}), start))
    assert driver.run(start + PATIENCE_US, grace_s=PATIENCE_S)
    assert [end.job.files[0].name for end in judge.ended] == ["1"]
    assert (kernel.tasks[0].freshness, kernel.tasks[0].job) == (1, None)
    _, *lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line.get("closing", False) for line in lines] == [False, True]
    again = assemble(plan, start, {"a": None})
    assert replay(again, lines) == (2, None)
    assert (again.tasks[0].freshness, again.tasks[0].job) == (1, None)


class Endless:
    """Its jobs end with the test."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self._over = threading.Event()

    def run(self, job):
        self.started.set()
        self._over.wait(2 * PATIENCE_S)

    def end(self) -> None:
        self._over.set()


@pytest.fixture
def endless() -> Iterator[Endless]:
    worker = Endless()
    yield worker
    worker.end()


def busy_tracks(count: int, worker: Endless) -> Tracks:
    plan = make_plan(Builder(tracks=count).files("a", period=1).build())
    (task,) = assemble(plan, 0, {"a": None}).tasks
    tracks = Tracks(count, kinds(worker, Judge()), lambda ended: None)
    for track in range(count):
        tracks.start(Update(task, track + 1, 0, 1, 0, track, 0, 1, ()))
    return tracks


def test_all_tracks_together_are_given_the_time_to_end(endless):
    tracks, started = busy_tracks(100, endless), time.monotonic()
    assert not tracks.close(1)
    assert 1 <= time.monotonic() - started < 50  # not a second for each


def test_a_run_that_is_closing_can_be_hastened(endless):
    plan = make_plan(Builder(tracks=1).files("a", period=1).build())
    start = clock()
    kernel, journal = assemble(plan, start, {"a": None}), Journal(io.StringIO(), {"now": start})
    judge, inbox = Judge(), Inbox()
    driver = driver_of(kernel, inbox, judge, Tracks(1, kinds(endless, judge), inbox.post), journal)
    inbox.post(FileFound("a", DataFile(1, "1"), frozenset({"a"}), start))

    def hasten() -> None:
        assert endless.started.wait(PATIENCE_S)
        driver.stop()
        time.sleep(1)
        driver.abandon()

    threading.Thread(target=hasten).start()
    assert not driver.run(start + 3 * PATIENCE_US, grace_s=2 * PATIENCE_S)
    assert SECOND < clock() - start < PATIENCE_US
    assert (kernel.tasks[0].freshness, kernel.tasks[0].job is None) == (0, False)
