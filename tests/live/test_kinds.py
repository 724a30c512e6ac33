"""Another kind of work runs live by a line in the table of kinds, and another source by its own messages."""

import io
import json
import threading
from typing import ClassVar

from freshline.assembly.assemble import assemble
from freshline.definitions.duration import HOUR
from freshline.kernel.events import Event, Failed
from freshline.kernel.job import Job
from freshline.kernel.journal import Journal
from freshline.kernel.kernel import Kernel
from freshline.kernel.task import IDLE, READY, RUNNING, Task
from freshline.live.clock import clock
from freshline.live.driver import LiveDriver
from freshline.live.kinds import Kind
from freshline.live.messages import Came, Emptied, Ended, Inbox, Landed
from freshline.live.tracks import Tracks
from freshline.plan.make import make_plan
from freshline.tables.events import DataFile, Finished
from freshline.tables.update import Update
from freshline.testing.builder import Builder
from patience import PATIENCE_US


class Question(Job):
    """A job of another kind."""

    __slots__ = ("asked",)


class Asked(Event):
    """Somebody wants to know something."""

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
    """Somebody who asks, one question after the other."""

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

    def __init__(self, asked: str) -> None:
        self.asked = asked

    def event(self, observer, now):
        return Asked("asker", self.asked)


class Observer:
    def __init__(self) -> None:
        self.heard: list[tuple[str, ...]] = []

    def landed(self, landed: Landed) -> None:
        self.heard.append(("landed", landed.feed))

    def emptied(self, feed: str, at: int) -> None:
        self.heard.append(("emptied", feed))

    def came(self, feed: str, at: int) -> None:
        self.heard.append(("came", feed))


class UpdateJudge:
    def judge(self, ended: Ended, now: int) -> Event:
        return Finished(ended.job, ended.job.loaded_to)


class QuestionJudge:
    """Ends the run after so many answers; a question that failed is asked again at once."""

    def __init__(self, answers: int) -> None:
        self.driver: LiveDriver
        self.answers = answers
        self.outcomes: list[str] = []

    def judge(self, ended: Ended, now: int) -> Event:
        self.outcomes.append(str(ended.outcome))
        if isinstance(ended.outcome, Exception):
            return Failed(ended.job, now)
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
    kinds = {Update: Kind(lambda track: Loads(), UpdateJudge()), Question: Kind(Answers, judge)}
    tracks = Tracks(1, kinds, inbox.post)
    journal = Journal(stream, {"now": start})
    driver = judge.driver = LiveDriver(kernel, inbox, tracks, journal, observer, lambda now, kernel: None)
    inbox.post(Landed("a", DataFile(5, "1"), frozenset({"a"}), start))
    inbox.post(Request("why"))
    assert driver.run(start + PATIENCE_US)
    assert kernel.task("a").freshness == 5
    assert judge.outcomes == ["who knows", "WHY"]
    assert Answers.made == [(0, "track-0")]  # once, in the track's own thread
    told = [event for line in stream.getvalue().splitlines() for event in json.loads(line).get("events", ())]
    assert [next(iter(event)) for event in told] == ["arrived", "asked", "finished", "failed", "answered"]


def test_a_message_without_an_event_is_heard_and_the_kernel_is_not_called_for_it():
    start = clock()
    kernel = assemble(make_plan(Builder(tracks=1).files("a", period=1).build()), start, {"a": None})
    kernel.handle(start, [])
    inbox, observer, stream = Inbox(), Observer(), io.StringIO()
    tracks = Tracks(1, {}, inbox.post)
    journal = Journal(stream, {"now": start})

    def tick(now: int, kernel: Kernel) -> None:
        if len(observer.heard) == 2:
            driver.stop()

    driver = LiveDriver(kernel, inbox, tracks, journal, observer, tick)
    inbox.post(Emptied("a", start))
    inbox.post(Came("a", start))
    assert driver.run(start + PATIENCE_US)
    assert observer.heard == [("emptied", "a"), ("came", "a")]
    assert len(stream.getvalue().splitlines()) == 1  # the header


def test_an_end_is_stamped_by_the_clock_that_is_given():
    ended: list[Ended] = []
    happened = threading.Event()

    def post(message: Ended) -> None:
        ended.append(message)
        happened.set()

    judge = UpdateJudge()
    tracks = Tracks(1, {Update: Kind(lambda track: Loads(), judge)}, post, now=lambda: 42)
    kernel = assemble(make_plan(Builder().files("a", period=1).build()), 0, {"a": None})
    job = Update(kernel.tasks[0], 1, 0, 1, 0, 0, 0, 7, ())
    tracks.start(job)
    assert happened.wait(PATIENCE_US / 1_000_000)
    assert tracks.close(PATIENCE_US / 1_000_000)
    assert ended == [Ended(job, 7, 42, judge)]
