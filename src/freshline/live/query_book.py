"""What is known of the queries of a run: what each is, and what its answers have cost."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from freshline.costs.iterations import FittedParts, PastPart, fit_parts
from freshline.definitions.queries import Query
from freshline.definitions.slices import SLICES
from freshline.queries.newcomer import Asked
from freshline.storage.history import PARTS_KEPT, History


@dataclass(slots=True)
class _Known:
    asked: Asked
    query: Query
    parts: deque[PastPart]
    fitted: FittedParts | None
    rows: int | None = None  # in its window, as far as is known
    is_new: bool = field(default=False)  # whether parts have come since the fit


class QueryBook:
    """By query, its definition and its costs. Tracks enter what they did, the driver's thread asks: a lock.

    A query that is edited is another one, though its name is the same and the old one may still be at its
    last iteration. So they are told apart by what the kernel was told of them, as an object.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._lock = Lock()
        self._known: dict[int, _Known] = {}  # by the identity of what the kernel was told

    def define(self, asked: Asked, query: Query) -> None:
        """The kernel was told that of this query."""
        parts = deque(self._history.parts(_key(query)), PARTS_KEPT)
        with self._lock:
            self._known[id(asked)] = _Known(asked, query, parts, fit_parts(parts))

    def forget(self, asked: Asked) -> None:
        """The query has gone."""
        with self._lock:
            self._known.pop(id(asked), None)

    def query(self, asked: Asked) -> Query:
        with self._lock:
            return self._known[id(asked)].query

    def expect(self, asked: Asked, rows: int) -> None:
        """So many rows are in its window now."""
        with self._lock:
            self._known[id(asked)].rows = rows

    def rows_per_slice(self, asked: Asked) -> float:
        with self._lock:
            return (self._known[id(asked)].rows or 0) / SLICES

    def fitted(self, asked: Asked) -> FittedParts | None:
        """What its answers cost; None where that is not known yet."""
        with self._lock:
            known = self._known[id(asked)]
            if known.is_new:
                known.fitted, known.is_new = fit_parts(known.parts), False
            return known.fitted

    def enter(self, asked: Asked, parts: Sequence[PastPart]) -> None:
        """An answer's parts took so long, and so did the rest of it."""
        with self._lock:
            known = self._known.get(id(asked))
            if known is None:
                return
            known.parts.extend(parts)
            known.is_new = True
            key = _key(known.query)
        with suppress(sqlite3.Error):  # a cost less to learn from
            self._history.record_parts(key, parts)


def learned_before(history: History, query: Query) -> FittedParts | None:
    """What answers of that query cost in runs before."""
    return fit_parts(history.parts(_key(query)))


def _key(query: Query) -> str:
    """Whose costs are alike: those of one name and one text."""
    return f"{query.name} {hashlib.blake2b(query.sql.encode(), digest_size=8).hexdigest()}"
