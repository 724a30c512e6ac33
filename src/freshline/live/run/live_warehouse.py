"""What a run tells whoever asks over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from freshline.base.clock import Clock, clock
from freshline.live.queries.edit_applier import EditApplier
from freshline.live.status.status import WarehouseStatus
from freshline.service.questions import Question
from freshline.service.running_warehouse import ServiceRequest


class LiveWarehouse:
    """Answers by what is frozen, by files, or by the driver's reply: it owns nothing of the run."""

    def __init__(
        self,
        published: Callable[[], WarehouseStatus],
        results: Callable[[str], dict[str, Any] | None],
        applying: EditApplier,
        ask: Callable[[Question], ServiceRequest],
        now: Clock = clock,
    ) -> None:
        self._published = published
        self._results = results
        self._applying = applying
        self._ask = ask
        self._clock = now

    def status(self) -> dict[str, Any]:
        return self._published().record(self._clock())

    def results(self, query: str) -> dict[str, Any] | None:
        return self._results(query)

    def classes(self) -> list[dict[str, Any]]:
        return [each.record() for each in self._published().classes]

    def ask(self, question: Question) -> ServiceRequest:
        return self._ask(question)

    def apply(self, text: str) -> dict[str, Any]:
        return self._applying.apply(text)
