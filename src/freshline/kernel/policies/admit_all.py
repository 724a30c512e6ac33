"""Admits every request: the baseline of paper 003."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from freshline.kernel.policies.request_order import ClassPeriod, RequestOrder
from freshline.kernel.requests.pending_request import PendingRequest


class AdmitAll(RequestOrder):
    """One queue for all classes, by deadline, mandatory parts first; no update is discarded (section 5.3)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._queue: list[tuple[bool, int, int, PendingRequest]] = []

    def judge(self, standing: ClassPeriod, pending: PendingRequest, now: int) -> int | None:
        return None

    def enqueue(self, standing: ClassPeriod, pending: PendingRequest) -> None:
        heappush(self._queue, (pending.done > 0, pending.deadline, pending.request.number, pending))

    def next_part(self, now: int) -> PendingRequest | None:
        while self._queue:
            pending = heappop(self._queue)[3]
            if not pending.over:
                return pending
        return None

    def queues(self) -> list[list[Any]]:
        return [self._queue]
