"""Everything of a run that is there for requests, and how it hangs together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshline.base.names import Names, cut
from freshline.definitions.sections.classes import CLASSES
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.job import Job
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.requests.request import RequestPart
from freshline.live.loop.kinds import JobKind
from freshline.live.loop.messages import Message
from freshline.live.requests.class_counts import ClassCounts
from freshline.live.requests.live_request import LiveRequest
from freshline.live.requests.live_requests import LiveRequests
from freshline.live.requests.part_worker import PartJudge, PartWorker, RequestReading
from freshline.live.requests.request_costs import RequestCosts
from freshline.live.requests.request_preparer import RequestPreparer
from freshline.live.requests.request_sessions import RequestSessions
from freshline.live.run.opening import RunResources
from freshline.live.status.status import ClassStatus
from freshline.service.failures import ServiceFailure
from freshline.service.questions import Question


class RequestWork:
    """Makes these parts. `ask` may be called by any thread, everything else by the driver's."""

    def __init__(
        self, warehouse: Warehouse, kernel: Kernel, opened: RunResources, stop: Callable[[str], None]
    ) -> None:
        self._warehouse = warehouse
        self._kernel = kernel
        self._session = opened.session
        sessions, book = RequestSessions(opened.session), RequestCosts(opened.history)
        self._counts = ClassCounts(warehouse.classes)
        self.requests = LiveRequests(sessions, self._counts)
        self._preparing = RequestPreparer(opened, sessions, book)
        self._serving = RequestReading(self.requests, sessions, opened.tables.readable, book)
        self._post: Callable[[Message], None] = lambda message: None
        self._judge = PartJudge(self.requests, stop)

    def attach(self, post: Callable[[Message], None]) -> None:
        """Who hands messages to the driver."""
        self._post = post

    def ask(self, question: Question) -> LiveRequest:
        """A question on its way; `ServiceFailure` where there is no such class."""
        name = question.class_name
        if name not in self._warehouse.classes:
            remedy = Names(CLASSES.name, self._warehouse.classes).remedy(name)
            raise ServiceFailure("unknown_class", f"there is no class {cut(name)!r}", remedy)
        return LiveRequest(question, self._preparing.prepare, self.requests, self._post)

    def warm_up(self) -> None:
        """Before the run: whoever asks first is not to wait for all that Spark compiles then."""
        if self._warehouse.classes:
            self._preparing.warm_up()

    def kind(self, pools: Sequence[str]) -> JobKind:
        """How parts are done live; `pools` are by track."""

        def worker(track: int) -> PartWorker:
            return PartWorker(self._session, pools[track], self._serving)

        def cancel(job: Job) -> None:
            assert isinstance(job, RequestPart), f"{job!r} is not of a request"
            self.requests.cancel(job.request.number)

        return JobKind(worker, self._judge, cancel)

    def statuses(self) -> tuple[ClassStatus, ...]:
        return self._counts.statuses(self._warehouse, self._kernel)
