"""Requests of service classes as a kind of work in a live run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from freshline.base.names import Names, cut
from freshline.definitions.sections.classes import CLASSES
from freshline.kernel.core.events import Instruction
from freshline.kernel.core.job import Job
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.requests.request import RequestPart
from freshline.live.loop.kinds import JobKind, Kinds
from freshline.live.loop.work import Work
from freshline.live.requests.class_counts import ClassCounts
from freshline.live.requests.class_status import CLASSES as SECTION
from freshline.live.requests.live_request import LiveRequest
from freshline.live.requests.live_requests import LiveRequests
from freshline.live.requests.part_worker import PartJudge, PartWorker, RequestReading
from freshline.live.requests.request_costs import RequestCosts
from freshline.live.requests.request_preparer import RequestPreparer
from freshline.live.requests.request_sessions import RequestSessions
from freshline.live.tables.run_context import RunContext, RunOpening
from freshline.service.failures import ServiceFailure
from freshline.service.questions import Question


class RequestWork(Work):
    """The requests of service classes. Any thread may call `ask`."""

    def __init__(self, opening: RunOpening) -> None:
        super().__init__(opening)
        opened = opening.resources
        self._warehouse = warehouse = opened.part.local
        sessions, book = RequestSessions(opened.session), RequestCosts(opened.history)
        self._counts = ClassCounts(warehouse.classes)
        self.requests = LiveRequests(sessions, self._counts)
        self._preparing = RequestPreparer(opened, sessions, book)
        self._serving = RequestReading(self.requests, sessions, opened.tables.readable, book)
        self._judge = PartJudge(self.requests, opening.lose)

    def warm_up(self) -> None:
        """Makes Spark compile, so that the first request does not have to wait for it."""
        if self._warehouse.classes:
            self._preparing.warm_up()

    def begin(self, run: RunContext) -> None:
        self._run = run

    def let_go(self) -> None:
        self.requests.close()

    def ask(self, question: Question) -> LiveRequest:
        """The request of a question; `ServiceFailure` if there is no such class."""
        name = question.class_name
        if name not in self._warehouse.classes:
            remedy = Names(CLASSES.name, self._warehouse.classes).remedy(name)
            raise ServiceFailure("unknown_class", f"there is no class {cut(name)!r}", remedy)
        return LiveRequest(question, self._preparing.prepare, self.requests, self._run.inbox.post)

    def kinds(self) -> Kinds:
        session, pools = self.opening.resources.session, self._run.pools

        def worker(track: int) -> PartWorker:
            return PartWorker(session, pools[track], track, self._serving)

        def cancel(job: Job) -> None:
            assert isinstance(job, RequestPart), f"{job!r} is not of a request"
            self.requests.cancel(job.request.number)

        return {RequestPart: JobKind(worker, self._judge, cancel)}

    def carry_out(self, instruction: Instruction) -> bool:
        return self.requests.carry_out(instruction)

    def status(self, now: int, kernel: Kernel) -> Mapping[str, tuple[Any, ...]]:
        return {SECTION.name: self._counts.statuses(self._warehouse, kernel)}

    def serves(self) -> Mapping[str, Callable[..., Any]]:
        return {"ask": self.ask}
