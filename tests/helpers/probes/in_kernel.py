"""Probes in the kernel: a task, its jobs, its release rule and the event that ends a job."""

from __future__ import annotations

from dataclasses import dataclass

from freshline.base.duration import SECOND
from freshline.kernel.assembly.context import Assembly
from freshline.kernel.assembly.kinds import KernelKind
from freshline.kernel.core.events import JobEvent
from freshline.kernel.core.job import Job
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import IDLE, READY, RUNNING, ReleaseRule, Task
from freshline.kernel.core.timers import Timers

NAME = "probe"


class Probe(Job):
    """Looks once at something."""

    __slots__ = ()


class ProbeTask(Task):
    """The probes, one after the other."""

    __slots__ = ("seen",)

    def __init__(self, place: int, timers: Timers) -> None:
        super().__init__(place, NAME)
        self.rule = EverySecond(self, timers)
        self.seen: list[int] = []

    def begin(self, now: int, track: int) -> Probe:
        self.jobs_started += 1
        self.job = Probe(self, self.jobs_started, self.release, self.deadline, now, track)
        self.state = RUNNING
        return self.job

    def probed(self, job: Probe, value: int, now: int) -> None:
        self.seen.append(value)
        self.job, self.state = None, IDLE
        self.pool.release_track(job, now)


class EverySecond(ReleaseRule):
    """A probe is released every second, unless the one before has not ended."""

    __slots__ = ("_task", "_timers")

    def __init__(self, task: ProbeTask, timers: Timers) -> None:
        self._task = task
        self._timers = timers

    def begin(self, now: int) -> None:
        self._timers.set(now + 1, self)

    def due(self, at: int) -> int | None:
        if self._task.state == IDLE:
            self._release(at)
        return at + SECOND

    def retry(self, now: int) -> None:
        self._release(now)

    def _release(self, at: int) -> None:
        task = self._task
        task.release, task.deadline, task.state = at, at + SECOND, READY
        task.pool.add(task)


@dataclass(slots=True, eq=False)
class Probed(JobEvent):
    """A probe has ended, with what it saw."""

    word = "probed"
    keys = (("value", "value"),)
    value: int

    def take(self, kernel: Kernel, now: int) -> None:
        self.job.task.probed(self.job, self.value, now)


def add_task(assembly: Assembly) -> None:
    assembly.kernel.add(ProbeTask(len(assembly.kernel.tasks), assembly.kernel.timers))


def join_pool(assembly: Assembly) -> None:
    assembly.kernel.pools[0].join(assembly.kernel.task(NAME))


PROBES_IN_KERNEL = KernelKind((Probed,), add_task, join_pool)
