"""The records of loaded files and updates on disk."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.planning.costs.fit import PastRun
from freshline.spark.errors import sentence
from freshline.spark.loading.load import Load
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.control.history import History
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.ledger import Ledger

_logger = logging.getLogger(__name__)


class LoadRecords:
    """Ledger and history, and the clean-up of loaded files."""

    def __init__(self, feeds: LandingFeeds, ledger: Ledger, history: History, archive: Path) -> None:
        self._feeds = feeds
        self._ledger = ledger
        self._history = history
        self._archive = archive

    def known(self, feed: str, name: str) -> ConsumedFile | None:
        """A file as it was loaded; None while some table of its feed has not loaded it."""
        found = [self._ledger.find(table, name) for table in self._feeds.readers(feed)]
        return found[0] if all(found) else None

    def missing(self, feed: str, name: str) -> set[str]:
        """The tables of a feed that have not loaded a file of that name."""
        return {table for table in self._feeds.readers(feed) if self._ledger.find(table, name) is None}

    def enter(self, load: Load, update: LoadResult, duration_us: int, busy: int = 0, tasks: int = 0) -> None:
        """Records the files and the cost of a committed load. A crash before this loses nothing.

        Errors here do not fail the load: after its commit it would load its files again.
        """
        table = load.table
        if update.computed:  # a commit without a Spark job says nothing about the cost of an update
            read = update.rows + update.rows_shed  # it read all of them
            rows = read if update.rows_in is None else update.rows_in
            files = len(update.consumed) - update.discarded
            run = PastRun(load.start, duration_us, rows, load.length_us, files, busy, tasks)
            with suppress(sqlite3.Error):  # one cost less to learn from
                self._history.record(table, run)
        try:
            self._ledger.record(table, update.version, update.consumed)
            for consumed in update.consumed:
                self.forget(self._feeds.of(table), consumed)
        except (sqlite3.Error, OSError) as error:
            # The ledger catches up from the table's log; a file that stays in its place is known.
            _logger.warning("after an update of %s: %s", table, sentence(error))

    def enter_empty(self, feed: str, seen: ConsumedFile) -> None:
        """Records a file without records, which needs no job, as loaded."""
        for table in self._feeds.readers(feed):
            self._ledger.remember(table, seen)
        self.forget(feed, seen)

    def forget(self, feed: str, loaded: ConsumedFile) -> None:
        """Moves or deletes a loaded file as its feed declares, once every table has loaded it."""
        action = self._feeds[feed].landing.after_load
        path = self._feeds.landing(feed) / loaded.name
        # A correction may have replaced it meanwhile: a file that is not loaded stays and is found.
        if action == "keep" or not loaded.is_at(path):
            return
        for reader in self._feeds.readers(feed):
            known = self._ledger.find(reader, loaded.name)
            if known is None or known.digest != loaded.digest:
                return  # another table has not loaded it, or has loaded other content
        if action == "delete":
            path.unlink(missing_ok=True)
        else:
            target = self._archive / feed / loaded.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
