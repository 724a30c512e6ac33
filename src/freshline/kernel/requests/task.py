"""A service class as the kernel sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from freshline.kernel.core.events import Cancel, Instruction
from freshline.kernel.core.job import Job
from freshline.kernel.core.task import ReleaseRule, Task
from freshline.kernel.core.timers import Timers, Waiter
from freshline.kernel.requests.pending_request import PendingRequest
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request, RequestPart

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.requests.service import Service


class ClassTask(Task):
    """The requests of one class: many at once, each an entry of the pool's order."""

    __slots__ = ("open", "outbox", "parts", "service", "timers")

    service: Service  # set by the order that it joins

    def __init__(self, place: int, name: str, timers: Timers, outbox: list[Instruction]) -> None:
        super().__init__(place, name)
        self.timers = timers
        self.outbox = outbox
        self.rule = ReleaseRule()  # only requests release parts
        self.open: dict[int, PendingRequest] = {}  # by number: admitted and not answered
        self.parts: dict[int, RequestPart] = {}  # by job number: the running ones

    def running(self, number: int) -> Job | None:
        return self.parts.get(number)

    def waiters(self) -> Sequence[Waiter]:
        return (self.service, *self.open.values())

    def requested(self, request: Request, now: int) -> None:
        """A client sends a request, which the pool's order admits or rejects at once."""
        pending = PendingRequest(self, request)
        retry_after_us = self.service.admit(pending, now)
        if retry_after_us is not None:
            self.outbox.append(RejectRequest(request, retry_after_us))
            return
        self.open[request.number] = pending
        self.timers.set(request.deadline, pending)
        self.pool.touch()

    def part_done(self, job: RequestPart, cost_us: int, now: int) -> None:
        """A part is done; the request continues with the next one, or is answered."""
        pending = self._ended(job, cost_us, True, now)
        if pending.over:
            return
        if pending.done == len(pending.request.parts_us):
            self._answer(pending, now)
        else:
            self.service.wait(pending, now)

    def part_lost(self, job: RequestPart, hopeless: bool, now: int) -> None:
        """A part has ended without effect. It is retried unless the request is hopeless."""
        pending = self._ended(job, now - job.start, False, now)
        if pending.over:
            return
        if hopeless:
            self._answer(pending, now)
        else:
            self.service.wait(pending, now)

    def failed(self, job: Job, now: int) -> None:
        assert isinstance(job, RequestPart), f"{job!r} is not of a class"
        self.part_lost(job, True, now)

    def expired(self, pending: PendingRequest, now: int) -> None:
        """A request's deadline has come: cancels the running part and sends the answer."""
        if pending.job is not None:
            self.outbox.append(Cancel(pending.job))
        self._answer(pending, now)

    def withdrawn(self, number: int, now: int) -> None:
        """The client of that request has gone."""
        pending = self.open.pop(number, None)
        if pending is None:
            return
        pending.over = True
        if pending.job is not None:
            self.outbox.append(Cancel(pending.job))
        self.service.withdrawn(pending, now)

    def _ended(self, job: RequestPart, cost_us: int, done: bool, now: int) -> PendingRequest:
        pending = job.pending
        del self.parts[job.number]
        pending.job = None
        if done and not pending.over:
            pending.done += 1
        self.service.part_ended(job, cost_us, done, now)
        self.pool.release_track(job, now)
        return pending

    def _answer(self, pending: PendingRequest, now: int) -> None:
        pending.over = True
        del self.open[pending.request.number]
        self.outbox.append(AnswerRequest(pending.request, pending.done))
        self.service.answered(pending, now)

    def queued(self) -> Sequence[PendingRequest]:
        return [pending for pending in self.open.values() if pending.job is None]

    def validate(self, now: int) -> None:
        for pending in self.open.values():
            assert not pending.over, f"{pending!r} is answered and open"
            assert pending.deadline > now, f"{pending!r} is overdue"
            assert pending.done < len(pending.request.parts_us), f"{pending!r} is done and not answered"
        for number, job in self.parts.items():
            assert job.number == number <= self.jobs_started
            assert job.start <= now
            assert self.pool.running.get(job.track) is job
            assert job.pending.over or job.pending.job is job


def classes_of(kernel: Kernel) -> list[ClassTask]:
    """The classes among a kernel's tasks, the most important first."""
    return [task for task in kernel.tasks if isinstance(task, ClassTask)]
