"""Another kind of work runs live by a line in the table of kinds, and another source by its own messages."""

import io
import json
import queue
import threading
import time
from typing import ClassVar

from freshline.base.clock import clock
from freshline.base.duration import HOUR
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.core.job import Job
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.order import Order
from freshline.kernel.core.preemption import PreemptivePool
from freshline.kernel.core.task import IDLE, READY, RUNNING, Task
from freshline.kernel.tables.events import DataFile, UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.live.loop.driver import LiveDriver, LoopHooks
from freshline.live.loop.kinds import JobKind
from freshline.live.loop.messages import EmptyFile, FileFound, FileRefused, Inbox, JobEnded, JobPutAside
from freshline.live.loop.tracks import Tracks
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder
from patience import PATIENCE_US


class Question(Job):
    """A job of another kind."""

    __slots__ = ("asked",)


class Asked(Event):
    """A question of a client."""

    def __init__(self, name: str, asked: str) -> None:
        self.name = name
        self.asked = asked

    def take(self, kernel: Kernel, now: int) -> None:
        kernel.task(self.name).ask(self.asked, now)

    def record(self):
        return {"asked": self.name, "what": self.asked}


class Answered(Event):
    """A question's job has ended."""

    def __init__(self, job: Question) -> None:
        self.job = job

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.answered(self.job, now)

    def record(self):
        return {"answered": self.job.task.name, "job": self.job.number}


class NoRule:
    """Its jobs are released by events alone."""

    def begin(self, now): ...

    def due(self, at): ...

    def job_failed(self, now, job): ...

    def unfinished_deadlines(self):
        return []

    def validate(self): ...


class Asker(Task):
    """A client that asks one question after the other."""

    __slots__ = ("asked",)

    def ask(self, asked: str, now: int) -> None:
        self.asked = asked
        self.release, self.deadline, self.state = now, now + HOUR, READY
        self.pool.add(self)

    def begin(self, now: int, track: int) -> Question:
        self.jobs_started += 1
        self.job = Question(self, self.jobs_started, self.release, self.deadline, now, track)
        self.job.asked = self.asked
        self.state = RUNNING
        return self.job

    def retry(self, now: int) -> None:
        self.ask(self.asked, now)

    def answered(self, job: Question, now: int) -> None:
        self.job, self.state = None, IDLE
        self.pool.release_track(job, now)


class Request:
    """A message of another source, which makes its own event."""

    def __init__(self, asked: str, name: str = "asker") -> None:
        self.asked = asked
        self.name = name

    def event(self, observer, now):
        return Asked(self.name, self.asked)


class Observer:
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def landed(self, landed: FileFound) -> None:
        self.heard.append(("landed", landed.feed))

    def emptied(self, feed: str, at: int) -> None:
        self.heard.append(("emptied", feed))

    def came(self, feed: str, at: int) -> None:
        self.heard.append(("came", feed))

    def rows_came(self, table: str, after: int, to: int, rows: int) -> None:
        self.heard.append(("rows", table))


class UpdateJudge:
    def judge(self, ended: JobEnded, now: int) -> Event:
        return UpdateFinished(ended.job, ended.job.loaded_to)


class QuestionJudge:
    """Ends the run after so many answers; a question that failed is asked again at once."""

    def __init__(self, answers: int) -> None:
        self.driver: LiveDriver
        self.answers = answers
        self.outcomes: list[str] = []

    def judge(self, ended: JobEnded, now: int) -> Event:
        self.outcomes.append(str(ended.outcome))
        if isinstance(ended.outcome, Exception):
            return JobFailed(ended.job, now)
        self.answers -= 1
        if not self.answers:
            self.driver.stop()
        return Answered(ended.job)


class Answers:
    """A track's worker: what it is asked for the first time it does not know."""

    made: ClassVar[list[tuple[int, str]]] = []

    def __init__(self, track: int) -> None:
        self.made.append((track, threading.current_thread().name))
        self._asked = False

    def run(self, job: Question) -> str:
        if not self._asked:
            self._asked = True
            raise LookupError("who knows")
        return job.asked.upper()


class Loads:
    def run(self, job: Update) -> int:
        return job.loaded_to


def test_jobs_of_two_kinds_share_tracks_loop_and_journal_each_with_its_worker_and_its_judge():
    start = clock()
    kernel = assemble(make_plan(Builder(tracks=1).files("a", period=1).build()), start, {"a": None})
    asker = Asker(1, "asker")
    asker.rule = NoRule()
    kernel.add(asker)
    kernel.pools[0].join(asker)
    inbox, observer, judge, stream = Inbox(), Observer(), QuestionJudge(1), io.StringIO()
    Answers.made.clear()
    kinds = {Update: JobKind(lambda track: Loads(), UpdateJudge()), Question: JobKind(Answers, judge)}
    tracks = Tracks(1, kinds, inbox.post)
    journal = Journal(stream, {"now": start})
    driver = judge.driver = LiveDriver(kernel, inbox, tracks, journal, observer, LoopHooks())
    inbox.post(FileFound("a", DataFile(5, "1"), frozenset({"a"}), start))
    inbox.post(Request("why"))
    assert driver.run(start + PATIENCE_US)
    assert kernel.task("a").freshness == 5
    assert judge.outcomes == ["who knows", "WHY"]
    assert Answers.made == [(0, "track-0")]  # once, in the track's own thread
    told = [event for line in stream.getvalue().splitlines() for event in json.loads(line).get("events", ())]
    assert [next(iter(event)) for event in told] == ["arrived", "asked", "finished", "failed", "answered"]


class ByPlace(Order[Task]):
    preemptive = True

    def key(self, entry: Task) -> int:
        return entry.place


class Ponders:
    """A worker in parts: a long question goes on until the short one has been asked."""

    def __init__(self, log: list[str], inbox: Inbox) -> None:
        self._log = log
        self._inbox = inbox

    def run(self, job: Question):
        self._log.append(f"{job.asked} begins")
        if job.asked == "long":
            self._inbox.post(Request("short", "hasty"))
            while "short begins" not in self._log:
                yield
                time.sleep(0.001)
        yield
        self._log.append(f"{job.asked} ends")
        return job.asked.upper()


def test_a_job_in_parts_makes_room_for_another_and_goes_on_where_it_was():
    start = clock()
    kernel = Kernel()
    kernel.pools.append(PreemptivePool("p", 1, 0, ByPlace(), kernel.touched))
    for place, name in enumerate(("hasty", "asker")):
        asker = Asker(place, name)
        asker.rule = NoRule()
        kernel.add(asker)
        kernel.pools[0].join(asker)
    kernel.begin(start)
    inbox, judge, stream, log = Inbox(), QuestionJudge(2), io.StringIO(), []
    tracks = Tracks(1, {Question: JobKind(lambda track: Ponders(log, inbox), judge)}, inbox.post)
    journal = Journal(stream, {"now": start})
    driver = judge.driver = LiveDriver(kernel, inbox, tracks, journal, Observer(), LoopHooks())
    inbox.post(Request("long"))
    assert driver.run(start + PATIENCE_US)
    assert log == ["long begins", "short begins", "short ends", "long ends"]
    assert judge.outcomes == ["SHORT", "LONG"]
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    said = [next(iter(each)) for line in lines for each in line.get("instructions", ())]
    assert said == ["start", "pause", "start", "start"]
    told = [next(iter(each)) for line in lines for each in line.get("events", ())]
    assert told == ["asked", "asked", "paused", "answered", "answered"]


def test_a_job_that_fails_in_a_later_part_is_told_with_its_reason():
    posted, happened = [], threading.Event()

    class Breaks:
        def run(self, job):
            yield
            raise LookupError("who knows")

    def post(message):
        posted.append(message)
        happened.set()

    tracks = Tracks(1, {Question: JobKind(lambda track: Breaks(), QuestionJudge(1))}, post)
    tracks.start(Question(Asker(0, "asker"), 1, 0, 1, 0, 0))
    assert happened.wait(PATIENCE_US / 1_000_000)
    assert tracks.close(PATIENCE_US / 1_000_000)
    assert [str(ended.outcome) for ended in posted] == ["who knows"]


def test_a_pause_that_comes_too_late_concerns_nobody_else_and_one_that_was_put_aside_goes_on():
    posted, log = queue.SimpleQueue(), []

    class Parts:
        def run(self, job):
            try:
                yield
                yield
            finally:
                log.append(job.number)
            return job.number

    asker = Asker(0, "asker")
    first, second, third = (Question(asker, number, 0, 1, 0, 0) for number in (1, 2, 3))
    tracks = Tracks(1, {Question: JobKind(lambda track: Parts(), QuestionJudge(1))}, posted.put)
    tracks.start(first)
    assert posted.get(timeout=PATIENCE_US / 1_000_000).outcome == 1
    tracks.pause(first)  # it has ended
    tracks.start(second)
    assert posted.get(timeout=PATIENCE_US / 1_000_000).outcome == 2
    tracks.pause(third)  # before its first part
    tracks.start(third)
    assert posted.get(timeout=PATIENCE_US / 1_000_000) == JobPutAside(third)
    tracks.start(third)
    assert posted.get(timeout=PATIENCE_US / 1_000_000).outcome == 3
    assert tracks.close(PATIENCE_US / 1_000_000)
    assert log == [1, 2, 3]


def test_a_message_without_an_event_is_heard_and_the_kernel_is_not_called_for_it():
    start = clock()
    kernel = assemble(make_plan(Builder(tracks=1).files("a", period=1).build()), start, {"a": None})
    kernel.handle(start, [])
    inbox, observer, stream = Inbox(), Observer(), io.StringIO()
    tracks = Tracks(1, {}, inbox.post)
    journal = Journal(stream, {"now": start})

    class StopsWhenHeard(LoopHooks):
        def tick(self, now: int, kernel: Kernel) -> None:
            if len(observer.heard) == 2:
                driver.stop()

    driver = LiveDriver(kernel, inbox, tracks, journal, observer, StopsWhenHeard())
    inbox.post(EmptyFile("a", start))
    inbox.post(FileRefused("a", start))
    assert driver.run(start + PATIENCE_US)
    assert observer.heard == [("emptied", "a"), ("came", "a")]
    assert len(stream.getvalue().splitlines()) == 1  # the header


def test_an_end_is_stamped_by_the_clock_that_is_given():
    ended: list[JobEnded] = []
    happened = threading.Event()

    def post(message: JobEnded) -> None:
        ended.append(message)
        happened.set()

    judge = UpdateJudge()
    tracks = Tracks(1, {Update: JobKind(lambda track: Loads(), judge)}, post, now=lambda: 42)
    kernel = assemble(make_plan(Builder().files("a", period=1).build()), 0, {"a": None})
    job = Update(kernel.tasks[0], 1, 0, 1, 0, 0, 0, 7, ())
    tracks.start(job)
    assert happened.wait(PATIENCE_US / 1_000_000)
    assert tracks.close(PATIENCE_US / 1_000_000)
    assert ended == [JobEnded(job, 7, 42, judge)]
