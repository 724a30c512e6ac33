"""The HTTP service of a run. A run whose service cannot start continues without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from freshline.base.clock import Clock, clock
from freshline.live.loop.run_notes import RunNotes
from freshline.live.loop.work import Work
from freshline.live.status.status import WarehouseStatus
from freshline.service.questions import Question
from freshline.service.running_warehouse import ServiceRequest
from freshline.spark.errors import sentence
from freshline.storage.control.control_folder import ControlFolder


def serve(
    works: Sequence[Work],
    published: Callable[[], WarehouseStatus],
    control: ControlFolder,
    notes: RunNotes,
    stack: ExitStack,
) -> None:
    """Serves clients that may read the storage, if this run answers for the warehouse."""
    serves: dict[str, Callable[..., Any]] = {
        name: answer for work in works for name, answer in work.serves().items()
    }
    if "status" not in serves:
        return  # another node answers for the warehouse
    # FastAPI takes a second to import; Spark has started by now.
    from freshline.service.server import serving

    try:
        stack.enter_context(serving(LiveWarehouse(published, serves), control.service))
    except OSError as error:
        notes.note(clock(), f"this run has no HTTP service: {sentence(error)}")
    for work in works:
        stack.callback(work.stop_serving)


class LiveWarehouse:
    """Answers from frozen records, from files or by the driver's reply; it has no state of its own.

    `serves` has, by method, the function of the kind of work that answers it.
    """

    def __init__(
        self,
        published: Callable[[], WarehouseStatus],
        serves: Mapping[str, Callable[..., Any]],
        now: Clock = clock,
    ) -> None:
        self._published = published
        self._serves = serves
        self._clock = now

    def status(self) -> dict[str, Any]:
        merged: WarehouseStatus = self._serves["status"](self._published())
        return merged.record(self._clock())

    def results(self, query: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = self._serves["results"](query)
        return found

    def classes(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.status()["classes"]
        return found

    def ask(self, question: Question) -> ServiceRequest:
        request: ServiceRequest = self._serves["ask"](question)
        return request

    def apply(self, text: str) -> dict[str, Any]:
        decided: dict[str, Any] = self._serves["apply"](text)
        return decided
