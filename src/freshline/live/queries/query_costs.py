"""The costs of the answers to one query, and how long their parts may be."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

from freshline.definitions.sections.queries import Query
from freshline.live.queries.part_costs import PartCosts
from freshline.planning.costs.iterations import PART_OF_BEGINNING, FittedParts, PastPart
from freshline.planning.costs.learned_queries import key_of
from freshline.storage.control.history import History

LOOKS: Final = (2, 8)  # slices, in turn


class QueryCosts:
    """One query's costs. Its track enters durations and the driver's thread reads them; hence the lock."""

    def __init__(self, history: History, query: Query) -> None:
        self._parts = PartCosts(history, key_of(query))
        self._lock = Lock()
        self._unread = 0  # answers in a row without time to read, looks included
        self.measured_part_us: int | None = None  # how long parts may be; None: never measured

    @property
    def fitted(self) -> FittedParts | None:
        """The fitted cost of its answers; None if it is not known yet."""
        return self._parts.fitted

    def part_us(self, planned_us: int) -> int:
        """How long parts may be: as measured, or else as planned, with a minimum."""
        if self.measured_part_us is not None:
            return self.measured_part_us
        fitted = self.fitted
        return planned_us if fitted is None else max(planned_us, PART_OF_BEGINNING * fitted.part_us)

    def looks(self) -> int:
        """The number of slices to read although there seems to be no time; mostly 0.

        A query that never reads never learns that it has become cheaper. So it reads some slices (a look)
        after 2, 4, 8 and so on answers without any, and forgets its old costs step by step. Parts of
        different sizes separate a part's cost from a row's.
        """
        with self._lock:
            unread = self._unread
        return LOOKS[unread.bit_length() % 2] if _is_look(unread) else 0

    def enter(self, parts: Sequence[PastPart]) -> None:
        """Records the durations of an answer's parts and of the rest of it."""
        if self._parts.warm_up():
            return
        read = any(part.slices for part in parts)
        with self._lock:
            is_in_time = read and not _is_look(self._unread)
            self._unread = 0 if is_in_time else self._unread + 1
        if not is_in_time:
            self._parts.forget_answer()
        if read:  # otherwise it says nothing about the cost of reading
            self._parts.add(parts)


def _is_look(unread: int) -> bool:
    return unread > 1 and unread & (unread - 1) == 0
