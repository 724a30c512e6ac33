"""The costs of requests by their SQL, and estimates for the next ones."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Final, Self

from freshline.live.queries.part_costs import PartCosts
from freshline.planning.costs.iterations import PastPart
from freshline.planning.costs.requests import PartCost, assumed_cost, learned_cost, usual_cost
from freshline.storage.control.history import History
from freshline.storage.delta.files import LiveFile

# The number of texts to remember, those that were asked last: users keep sending new SQL.
_TEXTS_MAX: Final = 256
_TEXTS_MORE: Final = 64  # texts beyond the limit before some are forgotten
_KIND: Final = "request "
_IN_GENERAL: Final = _KIND + "bytes"


@dataclass(frozen=True, slots=True)
class RequestExtent:
    """The data that a request would read now: of tables in slices and of tables that are read whole."""

    rows: int
    size: int  # bytes

    @classmethod
    def of(cls, files: Iterable[LiveFile]) -> Self:
        found = list(files)
        return cls(sum(file.rows for file in found), sum(file.size for file in found))


class RequestCosts:
    """The durations of requests' parts, by SQL. A lock lets any thread use it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._lock = Lock()
        self._known: OrderedDict[str, PartCosts] = OrderedDict()
        # The general cost of a byte. Its parts count bytes instead of rows.
        self._in_general = PartCosts(history, _IN_GENERAL)
        self._usual = usual_cost(self._in_general.parts)

    def cost(self, text: str, extent: RequestExtent) -> PartCost:
        """The cost of its parts: the known one, or else an estimate from the bytes."""
        with self._lock:
            assumed = assumed_cost(self._usual, extent.size)
            parts = self._of(text).parts
        return learned_cost(parts, extent.rows, assumed) if parts else assumed

    def enter(self, text: str, extent: RequestExtent, parts: Sequence[PastPart]) -> None:
        """Records the parts of an answer over tables of that extent. Their rows are the rows read."""
        if not parts:
            return
        share = extent.size / max(1, extent.rows)
        in_general = [part._replace(rows=round(part.rows * share)) for part in parts]
        with self._lock:
            known = self._of(text)
        if known.warm_up():
            return
        self._in_general.add(in_general)
        known.add(parts)
        usual = usual_cost(self._in_general.parts)
        with self._lock:
            self._usual = usual

    def forget_oldest(self, text: str) -> None:
        """Forgets the oldest cost of a refused request, which may be cheaper now."""
        with self._lock:
            self._of(text).forget_part()

    def _forget_texts(self) -> None:
        while len(self._known) > _TEXTS_MAX:
            self._known.popitem(last=False)
        with suppress(sqlite3.Error):
            self._history.keep_parts(_KIND, _TEXTS_MAX)

    def _of(self, text: str) -> PartCosts:
        key = _key(text)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = PartCosts(self._history, key)
            if len(self._known) > _TEXTS_MAX + _TEXTS_MORE:
                self._forget_texts()
        self._known.move_to_end(key)
        return known


def _key(text: str) -> str:
    return _KIND + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
