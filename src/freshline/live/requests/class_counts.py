"""Counts the requests of the service classes of a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.requests.request import Request
from freshline.kernel.requests.task import classes_of
from freshline.live.requests.class_status import ClassStatus


@dataclass(slots=True)
class _Count:
    answered: int = 0
    errors: float = 0.0  # of those, together
    rejected: int = 0
    unanswered: int = 0
    withdrawn: int = 0


class ClassCounts:
    """By class, the outcomes of its requests since the run began. Only the driver's thread uses it."""

    def __init__(self, classes: Iterable[str]) -> None:
        self._counts = {name: _Count() for name in classes}

    def answered(self, request: Request, parts_done: int) -> None:
        count = self._counts[request.class_name]
        count.answered += 1
        count.errors += request.error(parts_done)

    def rejected(self, name: str) -> None:
        self._counts[name].rejected += 1

    def unanswered(self, name: str) -> None:
        self._counts[name].unanswered += 1

    def withdrawn(self, name: str) -> None:
        self._counts[name].withdrawn += 1

    def statuses(self, warehouse: Warehouse, kernel: Kernel) -> tuple[ClassStatus, ...]:
        """The statuses, the most important class first."""
        found = []
        for task in classes_of(kernel):
            defined, count = warehouse.classes[task.name], self._counts[task.name]
            figures = task.service.figures(task.name)
            found.append(
                ClassStatus(
                    task.name,
                    defined.pool,
                    float(defined.error),
                    figures.ate,
                    figures.admitted,
                    figures.quota,
                    figures.waiting,
                    count.answered,
                    count.errors / count.answered if count.answered else None,
                    count.rejected,
                    count.unanswered,
                    count.withdrawn,
                    figures.state,
                )
            )
        return tuple(found)
