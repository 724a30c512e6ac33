"""The durations of parts of answers, kept over runs."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from threading import Lock

from freshline.planning.costs.iterations import FittedParts, PastPart, fit_parts
from freshline.storage.control.history import PARTS_KEPT, History


class PartCosts:
    """The parts of answers to one query or one SQL text. A lock lets any thread use it.

    The first answer of a run does not count: Spark compiles for it, which takes many times as long.
    """

    def __init__(self, history: History, key: str) -> None:
        self._history = history
        self._key = key
        self._lock = Lock()
        self._parts = deque(history.parts(key), PARTS_KEPT)
        self._fitted: FittedParts | None = None
        self._is_new = True  # whether parts were added or removed since the fit
        self._is_warm = False  # whether this run has had an answer

    @property
    def parts(self) -> list[PastPart]:
        with self._lock:
            return [*self._parts]

    @property
    def fitted(self) -> FittedParts | None:
        """The fitted cost of an answer; None if it is not known yet."""
        with self._lock:
            if self._is_new:
                self._fitted, self._is_new = fit_parts(self._parts), False
            return self._fitted

    def warm_up(self) -> bool:
        """Records the end of an answer; returns whether it was the first of this run."""
        with self._lock:
            was_warm, self._is_warm = self._is_warm, True
            return not was_warm

    def add(self, parts: Sequence[PastPart]) -> None:
        with self._lock:
            self._parts.extend(parts)
            self._is_new = True
        with suppress(sqlite3.Error):  # the next run has one cost less
            self._history.record_parts(self._key, parts)

    def forget_part(self) -> None:
        with self._lock:
            if self._parts:
                self._parts.popleft()
                self._is_new = True

    def forget_answer(self) -> None:
        """Forgets the oldest answer, if the others are enough for a fit."""
        with self._lock:
            oldest = self._parts[0].iteration if self._parts else 0
            others = [part for part in self._parts if part.iteration != oldest]
            if fit_parts(others) is not None:
                self._parts = deque(others, PARTS_KEPT)
                self._is_new = True
