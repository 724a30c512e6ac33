"""The run's side of the HTTP service: each method is answered by a kind of work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from freshline.base.clock import Clock, clock
from freshline.live.status.status import WarehouseStatus
from freshline.service.questions import Question
from freshline.service.running_warehouse import ServiceRequest


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
