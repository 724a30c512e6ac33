"""What the answers to one query have cost, and how long their parts may be."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

from freshline.definitions.sections.queries import Query
from freshline.live.queries.part_costs import PartCosts
from freshline.planning.costs.iterations import PART_OF_BEGINNING, FittedParts, PastPart
from freshline.planning.costs.learned_queries import key_of
from freshline.storage.control.history import History

LOOKS: Final = (2, 8)  # slices, by turns


class QueryCosts:
    """One query's costs. Its track enters what an answer took, the driver's thread asks: a lock."""

    def __init__(self, history: History, query: Query) -> None:
        self._parts = PartCosts(history, key_of(query))
        self._lock = Lock()
        self._unread = 0  # answers in a row for which there was no time to read anything, looks included
        self.measured_part_us: int | None = None  # how long parts may be; None: it was never measured

    @property
    def fitted(self) -> FittedParts | None:
        """What its answers cost; None where that is not known yet."""
        return self._parts.fitted

    def part_us(self, planned_us: int) -> int:
        """As it was measured or, where it never is, as it was planned, and not next to nothing."""
        if self.measured_part_us is not None:
            return self.measured_part_us
        fitted = self.fitted
        return planned_us if fitted is None else max(planned_us, PART_OF_BEGINNING * fitted.part_us)

    def looks(self) -> int:
        """How many slices it reads though there seems to be no time for any; mostly none.

        A query that never reads never learns that it would take less time now. So it looks, after 2, 4, 8 and
        so on answers without any slice, and what it had learned is forgotten bit by bit. Parts of unlike
        sizes tell a part's cost from a row's.
        """
        with self._lock:
            unread = self._unread
        return LOOKS[unread.bit_length() % 2] if _is_look(unread) else 0

    def enter(self, parts: Sequence[PastPart]) -> None:
        """An answer's parts took so long, and so did the rest of it."""
        if self._parts.warm_up():
            return
        read = any(part.slices for part in parts)
        with self._lock:
            is_in_time = read and not _is_look(self._unread)
            self._unread = 0 if is_in_time else self._unread + 1
        if not is_in_time:
            self._parts.forget_answer()
        if read:  # otherwise it tells nothing of what reading costs
            self._parts.add(parts)


def _is_look(unread: int) -> bool:
    return unread > 1 and unread & (unread - 1) == 0
