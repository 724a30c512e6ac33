"""What is known of the queries of a run: what each is, and what its answers have cost."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Final

from freshline.kernel.queries.query_spec import QuerySpec
from freshline.planning.costs.iterations import PART_OF_BEGINNING, FittedParts, PastPart, fit_parts
from freshline.planning.costs.learned_queries import key_of, parts_of
from freshline.spark.answering.window_reading import PreparedQuery
from freshline.storage.control.history import PARTS_KEPT, History

LOOKS: Final = (2, 8)  # slices, by turns


@dataclass(slots=True)
class _Known:
    asked: QuerySpec
    prepared: PreparedQuery
    parts: deque[PastPart]
    fitted: FittedParts | None
    part_us: int | None = None  # that its parts may be long; None: nobody has measured it
    unread: int = 0  # answers in a row for which there was no time to read anything, looks included
    is_new: bool = False  # whether parts have come since the fit
    is_warm: bool = False  # whether it has been answered in this run


class QueryCosts:
    """By query, its definition and its costs. Tracks enter what they did, the driver's thread asks: a lock.

    A query that is edited is another one, though its name is the same and the old one may still be at its
    last iteration. So they are told apart by what the kernel was told of them, as an object.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._lock = Lock()
        self._known: dict[int, _Known] = {}  # by the identity of what the kernel was told

    def define(self, asked: QuerySpec, prepared: PreparedQuery) -> None:
        """The kernel was told that of this query."""
        parts = deque(parts_of(self._history, prepared.query), PARTS_KEPT)
        with self._lock:
            self._known[id(asked)] = _Known(asked, prepared, parts, fit_parts(parts))

    def keep_only(self, asked: Iterable[QuerySpec]) -> None:
        """All others have gone."""
        kept = {id(each) for each in asked}
        with self._lock:
            self._known = {identity: known for identity, known in self._known.items() if identity in kept}

    def prepared(self, asked: QuerySpec) -> PreparedQuery:
        with self._lock:
            return self._known[id(asked)].prepared

    def part(self, asked: QuerySpec, part_us: int) -> None:
        """So long its parts are to be at most."""
        with self._lock:
            self._known[id(asked)].part_us = part_us

    def part_us(self, asked: QuerySpec) -> int:
        """As it was measured or, where it never is, as it was planned, and not next to nothing."""
        fitted = self.fitted(asked)
        with self._lock:
            part_us = self._known[id(asked)].part_us
        if part_us is None:
            return asked.part_us if fitted is None else max(asked.part_us, PART_OF_BEGINNING * fitted.part_us)
        return part_us

    def fitted(self, asked: QuerySpec) -> FittedParts | None:
        """What its answers cost; None where that is not known yet."""
        with self._lock:
            known = self._known[id(asked)]
            if known.is_new:
                known.fitted, known.is_new = fit_parts(known.parts), False
            return known.fitted

    def looks(self, asked: QuerySpec) -> int:
        """How many slices it reads though there seems to be no time for any; mostly none.

        Who never reads never learns that he would take less time than he once did. So he looks, after 2, 4, 8
        and so on answers without any, and what he had learned is forgotten bit by bit. Parts of unlike sizes
        tell a part's cost from a row's.
        """
        with self._lock:
            unread = self._known[id(asked)].unread
        return LOOKS[unread.bit_length() % 2] if _is_look(unread) else 0

    def enter(self, asked: QuerySpec, parts: Sequence[PastPart]) -> None:
        """An answer's parts took so long, and so did the rest of it."""
        with self._lock:
            known = self._known.get(id(asked))
            if known is None:
                return
            if not known.is_warm:
                known.is_warm = True  # its first answer is several times as long as any later one
                return
            read = any(part.slices for part in parts)
            if read and not _is_look(known.unread):
                known.unread = 0
            else:
                known.unread += 1
                _forget_oldest(known.parts)
                known.is_new = True
            if not read:
                return  # it tells nothing of what reading costs
            known.parts.extend(parts)
            known.is_new = True
            key = key_of(known.prepared.query)
        with suppress(sqlite3.Error):  # a cost less to learn from
            self._history.record_parts(key, parts)


def _is_look(unread: int) -> bool:
    return unread > 1 and unread & (unread - 1) == 0


def _forget_oldest(parts: deque[PastPart]) -> None:
    """An answer, as long as the others tell what it costs."""
    oldest = parts[0].iteration if parts else 0
    others = [part for part in parts if part.iteration != oldest]
    if fit_parts(others) is not None:
        parts.clear()
        parts.extend(others)
