"""Loads the files of a run: the watch finds them, tracks load them, bad ones go to quarantine."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from freshline.live.loop.messages import Message
from freshline.live.tables.discard_control import DiscardControl
from freshline.live.tables.file_trial import FileBlame, FileTrial, OtherFiles
from freshline.live.tables.file_watch import FileWatch
from freshline.live.tables.housekeeping import KeptTable, kept_tables
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.load_records import LoadRecords
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.live.tables.run_context import RunOpening
from freshline.live.tables.run_records import RunRecords
from freshline.live.tables.update_worker import SparkWorker, UpdateRunner
from freshline.spark.loading.updater import Updater
from freshline.storage.control.quarantine import Quarantine


class Loading:
    """The objects that load files, for tables and for steps."""

    def __init__(
        self,
        opening: RunOpening,
        records: RunRecords,
        quarantine: Quarantine,
        files_max: int | None,
        post: Callable[[Message], None],
        busy: Callable[[], int],
    ) -> None:
        setup, resources = opening.setup, opening.resources
        self._session = resources.session
        self._ledger = resources.ledger
        self._tables = resources.tables.tables
        local, archive = resources.part.local, setup.layout.archive
        feeds = LandingFeeds(local, setup.landing)
        books = LoadRecords(feeds, resources.ledger, resources.history, archive)
        refusals = QuarantineQueue(quarantine, records.notes, post)
        self.discarding = DiscardControl(local)
        self.discarding.recall(self._tables)
        self.watch = FileWatch(
            feeds,
            books,
            refusals,
            records.notes,
            files_max,
            warmth=resources.warmth,
            discarding=self.discarding,
        )
        updater = Updater(
            setup.warehouse,
            self._tables,
            resources.schemas,
            setup.landing,
            self.discarding.last_values,
            resources.tables.readable,
        )
        others = OtherFiles(feeds, self._tables, archive, self.watch.waiting)
        trial = FileTrial(feeds, updater, resources.scratch, others.of)
        self._locks = {name: Lock() for name in self._tables}
        self._updates = UpdateRunner(updater, books, self._locks, busy)
        self._blame = FileBlame(feeds, trial, refusals, self.watch, records.troubles.attempts)

    def worker(self, pool: str, track: int) -> SparkWorker:
        """The worker of a track, whose jobs run in that pool of Spark."""
        return SparkWorker(self._session, pool, track, self._updates, self._blame)

    def kept(self) -> dict[str, KeptTable]:
        """The loaded tables, for housekeeping."""
        return kept_tables(self._tables, self._locks, self._ledger)
