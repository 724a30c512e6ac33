"""Jobs that are put aside for others: asked, answered in its own time, and gone on with."""

import io
import json
from heapq import heappop, heappush
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.kernel.assembly import replay as replay_module
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.kinds import KINDS, KernelKind
from freshline.kernel.assembly.replay import replay
from freshline.kernel.core.events import Event, JobEvent, JobFailed, JobPaused, Pause, Start
from freshline.kernel.core.job import Job
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.order import Order
from freshline.kernel.core.preemption import PreemptivePool
from freshline.kernel.core.task import BACKED_OFF, IDLE, PAUSED, READY, RUNNING, Task
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.planning.plan.make import make_plan
from freshline.simulation.driver import SimulatedDriver
from freshline.testing.builder import Builder


class ByPlace(Order[Task]):
    preemptive = True

    def key(self, entry: Task) -> int:
        return entry.place


class Done(JobEvent):
    word = "done"

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.done(self.job, now)


class EveryPeriod:
    """A job every period; those that come too soon wait."""

    def __init__(self, task: "Chore", timers) -> None:
        self.task, self.timers, self.pending = task, timers, 0

    def begin(self, now):
        self.timers.set(now, self)

    def due(self, at):
        if self.task.state == IDLE:
            self.release(at)
        else:
            self.pending += 1
        return at + self.task.period_us

    def release(self, at):
        task = self.task
        task.release, task.deadline, task.state = at, at + task.period_us, READY
        task.pool.add(task)

    def over(self, now):
        if self.pending:
            self.pending -= 1
            self.release(self.task.release + self.task.period_us)

    def job_failed(self, now, job): ...

    def retry(self, now):
        self.release(self.task.release)

    def unfinished_deadlines(self):
        return []

    def validate(self): ...


class Chore(Task):
    """A task of a kind that is made up."""

    __slots__ = ("cost_us", "part_us", "period_us")

    def begin(self, now, track):
        self.jobs_started += 1
        self.job = Job(self, self.jobs_started, self.release, self.deadline, now, track)
        self.state = RUNNING
        return self.job

    def done(self, job, now):
        assert self.state == RUNNING
        self.job, self.state = None, IDLE
        self.pool.release_track(job, now)
        self.rule.over(now)


class Chores:
    """The simulated kind: parts of equal length, the last of them as long as is left."""

    def __init__(self) -> None:
        self.finished: list[tuple[str, int, int]] = []
        self.said: list[tuple[int, str, str]] = []

    def begins(self, kernel): ...

    def cost_us(self, job):
        return job.task.cost_us

    def part_ends_us(self, job, ran_us):
        part_us = job.task.part_us
        return -(-ran_us // part_us) * part_us if part_us else ran_us

    def paused(self, now, job):
        self.said.append((now, "paused", job.task.name))

    def goes_on(self, now, job):
        self.said.append((now, "goes on", job.task.name))

    def ended(self, now, job):
        self.finished.append((job.task.name, job.number, now))
        return Done(job)

    def crashed(self, now): ...

    def over(self, end, kernel): ...


def kernel_of(chores: list[tuple[int, int, int]]) -> Kernel:
    """Chores by priority: period, cost, part."""
    kernel = Kernel()
    pool = PreemptivePool("p", 1, 0, ByPlace(), kernel.touched)
    kernel.pools.append(pool)
    for place, (period_us, cost_us, part_us) in enumerate(chores):
        task = Chore(place, f"c{place}")
        task.period_us, task.cost_us, task.part_us = period_us, cost_us, part_us
        task.rule = EveryPeriod(task, kernel.timers)
        kernel.add(task)
        pool.join(task)
    kernel.begin(0)
    return kernel


def finished_step_by_step(chores: list[tuple[int, int, int]], end: int) -> list[tuple[str, int, int]]:
    """The same, microsecond by microsecond: who has begun a part ends it, then the first goes on."""
    waiting: list[list[int]] = [[] for _ in chores]  # by chore: what is left of each job
    numbers = [0] * len(chores)
    current, finished = None, []
    for now in range(end + 1):
        if current is not None and waiting[current][0] == 0:
            waiting[current].pop(0)
            numbers[current] += 1
            finished.append((f"c{current}", numbers[current], now))
            current = None
        for place, (period_us, cost_us, _) in enumerate(chores):
            if now % period_us == 0:
                waiting[place].append(cost_us)
        if current is not None:
            _, cost_us, part_us = chores[current]
            ran_us = cost_us - waiting[current][0]
            if part_us == 0 or ran_us % part_us == 0:
                current = None
        if current is None:
            current = next((place for place, jobs in enumerate(waiting) if jobs), None)
        if current is not None:
            waiting[current][0] -= 1
    return finished


@st.composite
def sets_of_chores(draw):
    count = draw(st.integers(1, 5))
    one = st.tuples(st.integers(3, 40), st.integers(1, 15), st.integers(0, 6))
    return [draw(one) for _ in range(count)]


@sampled(300)
@given(sets_of_chores())
def test_jobs_end_when_they_do_if_every_microsecond_is_looked_at(chores):
    end, kind = 300, Chores()
    driver = SimulatedDriver(kernel_of(chores), {Job: kind}, {})
    while driver.next_at <= end:
        driver.step()
        validate(driver.kernel)
    driver.run(end)
    assert kind.finished == finished_step_by_step(chores, end)
    done_us = sum(chores[int(name[1:])][1] for name, _, _ in kind.finished)
    assert driver.busy_us.get(0, 0) >= done_us
    if sum(cost_us / period_us for period_us, cost_us, _ in chores) > 1.2:
        assert driver.busy_us[0] >= end - 1  # no instant was lost


@sampled(300)
@given(sets_of_chores(), st.integers(0, 10**6))
def test_whatever_is_answered_and_when_the_kernel_stays_sound_and_its_journal_replays(chores, seed):
    """A pause is answered at once or late, the job ends or fails instead, and tasks go."""
    rng = Random(seed)
    kernel, stream = kernel_of(chores), io.StringIO()
    journal = Journal(stream, {})
    coming: list[tuple[int, int, Event]] = []  # what the world is going to say
    paused = 0
    for number in range(200):
        now = min([kernel.wake_at, *(at for at, _, _ in coming[:1])])
        events = []
        while coming and coming[0][0] == now:
            events.append(heappop(coming)[2])
        instructions = kernel.handle(now, events)
        journal.write(now, events, instructions)
        validate(kernel)
        for instruction in instructions:
            job = instruction.job
            paused += isinstance(instruction, Pause)
            if isinstance(instruction, Start):
                at = now + rng.randint(1, 20)
                end = Done(job) if rng.random() < 0.9 else JobFailed(job, at + rng.randint(0, 9))
                heappush(coming, (at, number, end))
                continue
            ((at, known, end),) = coming
            if rng.random() < 0.8:
                heappop(coming)
                at = rng.randint(now, at)
                heappush(coming, (at, known, JobPaused(job)))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()][1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "KINDS", [*KINDS, KernelKind((Done,))])
        assert replay(kernel_of(chores), lines) == (len(lines), None)
    assert all(task.state in (IDLE, READY, RUNNING, PAUSED, BACKED_OFF) for task in kernel.tasks)


def two() -> tuple[Kernel, Job]:
    """The long chore runs since 0, and the short one comes at 10."""
    kernel = kernel_of([(1000, 1, 0), (1000, 50, 20)])
    short, long = kernel.tasks
    kernel.timers.drop(short.rule)
    kernel.timers.set(10, short.rule)
    (start,) = kernel.handle(0, [])
    assert start.job.task is long
    return kernel, start.job


def test_a_job_is_asked_once_and_goes_on_where_it_was():
    kernel, long = two()
    (pause,) = kernel.handle(10, [])
    assert isinstance(pause, Pause)
    assert pause.job is long
    assert kernel.handle(12, []) == []
    (start,) = kernel.handle(20, [JobPaused(long)])
    assert start.job.task.name == "c0"
    (again,) = kernel.handle(21, [Done(start.job)])
    assert again.job is long
    assert (again.job.number, again.job.start) == (1, 0)


def test_a_job_that_ends_or_fails_before_it_is_put_aside_has_answered():
    for end in (Done, lambda job: JobFailed(job, 30)):
        kernel, long = two()
        kernel.handle(10, [])
        (start,) = kernel.handle(15, [end(long)])
        assert start.job.task.name == "c0"
        validate(kernel)


def test_where_the_reason_has_gone_the_job_goes_on():
    kernel, long = two()
    kernel.handle(10, [])
    kernel.remove(kernel.task("c0"))
    (start,) = kernel.handle(20, [JobPaused(long)])
    assert isinstance(start, Start)
    assert start.job is long
    validate(kernel)


def test_of_several_that_came_meanwhile_the_first_runs():
    kernel = kernel_of([(1000, 1, 0), (1000, 1, 0), (1000, 50, 20)])
    first, second, _ = kernel.tasks
    for at, task in ((15, first), (10, second)):
        kernel.timers.drop(task.rule)
        kernel.timers.set(at, task.rule)
    (start,) = kernel.handle(0, [])
    (pause,) = kernel.handle(10, [])
    assert kernel.handle(15, []) == []
    (next_one,) = kernel.handle(20, [JobPaused(pause.job)])
    assert (start.job, next_one.job.task) == (pause.job, first)


def test_a_pool_that_does_not_preempt_takes_no_pause():
    kernel = assemble(make_plan(Builder().files("a", period=10).build()))
    (start,) = kernel.handle(1, [FileArrived("a", DataFile(1, "1"))])
    with pytest.raises(AssertionError, match="which pool updates does not allow"):
        kernel.handle(2, [JobPaused(start.job)])


def test_a_job_is_not_put_aside_twice():
    kernel, long = two()
    kernel.handle(10, [])
    kernel.handle(20, [JobPaused(long)])
    with pytest.raises(AssertionError, match="put aside before"):
        kernel.handle(21, [JobPaused(long)])
