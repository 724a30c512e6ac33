"""The tables of answers, for queries with `into`."""

from __future__ import annotations

from threading import Lock

from freshline.kernel.queries.iteration import Iteration
from freshline.live.tables.housekeeping import KeptTable
from freshline.spark.answering.answers_table import AnswersTable
from freshline.spark.answering.window_reading import PreparedQuery, ReadingOutcome
from freshline.storage.control.layout import StorageLayout


class QueryTables:
    """Opens a table at its first answer, for all tracks. An edited query may continue the old one's table."""

    def __init__(self, layout: StorageLayout) -> None:
        self._layout = layout
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}  # by name
        self._open: dict[str, tuple[PreparedQuery, AnswersTable]] = {}  # by name, with the query

    def add(self, prepared: PreparedQuery, outcome: ReadingOutcome, job: Iteration, finished_us: int) -> None:
        name = prepared.query.into
        assert name is not None, f"{prepared.query.name} keeps no answers"
        with self._lock:
            lock = self._locks.setdefault(name, Lock())
        with lock:
            known = self._open.get(name)
            if known is None or known[0] is not prepared:
                known = (prepared, AnswersTable.open_or_create(self._layout.table(name), prepared))
                with self._lock:
                    self._open[name] = known
            known[1].add(outcome, job.release, job.deadline, finished_us)

    def kept(self) -> dict[str, KeptTable]:
        """The tables for housekeeping. Only readers need their logs."""
        with self._lock:
            return {
                name: KeptTable(table.stored, self._locks[name], prepared.query.name, table.newest)
                for name, (prepared, table) in self._open.items()
            }
