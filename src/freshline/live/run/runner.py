"""A warehouse running on Spark: everything that belongs to it, opened and closed in order."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from freshline.base import signals
from freshline.base.clock import clock
from freshline.base.duration import SECOND
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.terms import learned
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.requests.events import UpdateDiscarded
from freshline.kernel.requests.request import RequestPart
from freshline.kernel.steps.job import StepJob
from freshline.kernel.tables.events import BatchCostsLearned
from freshline.kernel.tables.task import tables_of
from freshline.kernel.tables.update import Update
from freshline.landing.directories import check_directories, landing_directories
from freshline.live.loop.driver import LiveDriver
from freshline.live.loop.journal import journal_of
from freshline.live.loop.kinds import JobKind, Kinds
from freshline.live.loop.messages import Inbox, JobEnded, JobPutAside
from freshline.live.loop.tracks import Tracks
from freshline.live.nodes.node_work import NodeWork
from freshline.live.queries.edit_applier import EditApplier
from freshline.live.queries.query_work import QueryWork
from freshline.live.requests.request_work import RequestWork
from freshline.live.run.drain_control import DrainControl
from freshline.live.run.keeper import Keeper
from freshline.live.run.learned_plan import LearnedPlan
from freshline.live.run.live_warehouse import LiveWarehouse
from freshline.live.run.opening import RunResources, RunSetup, Warm, open_site
from freshline.live.run.run_end import RunEnd
from freshline.live.status.status import Progress, WarehouseStatus
from freshline.live.tables.blame_files import FileBlame, OtherFiles
from freshline.live.tables.definition_changes import check_tables
from freshline.live.tables.discard_control import DiscardControl
from freshline.live.tables.file_trial import FileTrial
from freshline.live.tables.file_watch import FileWatch
from freshline.live.tables.housekeeping import Housekeeper, kept_tables
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.load_records import LoadRecords
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.live.tables.update_worker import SparkWorker, UpdateRunner
from freshline.planning.costs.bounds import average_us
from freshline.planning.plan.plan import Plan
from freshline.spark.errors import sentence, spark_ended
from freshline.spark.loading.updater import Updater
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.quarantine import Quarantine

_logger = logging.getLogger(__name__)
_COUNT_EVERY_US = 3 * SECOND
_HOUSEKEEPING_MAX_S = 30
_CANCELLED_MAX_S = 2.0


class Runner:
    """Holds the storage's lease, the Spark session, the tables and the loop. Use it in a `with`.

    `drain`: stop when there is nothing left to load, instead of waiting for more, or for the releases of
    derived tables; `files_max`: of each feed at most so many files; `accepted`: tables that were changed and
    go on all the same; `accept_landing`: directories that do not look like landing directories are;
    `batches`: a job may take several files of a backlog; `warm`: what is warmed up before the first file is
    looked for (who measures wants all of it); `on_start` hears how far the start is. History and quarantine
    are the storage's unless others are given. `node`: only what is on that node is run.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        folder: Path,
        storage: Path,
        *,
        master: str | None = None,
        settings: Mapping[str, str] | None = None,
        session: SparkSession | None = None,
        history: Path | None = None,
        quarantine: Quarantine | None = None,
        drain: bool = False,
        files_max: int | None = None,
        warm: Warm = "first",
        accepted: Sequence[str] = (),
        accept_landing: bool = False,
        batches: bool = True,
        on_start: Callable[[Progress], None] | None = None,
        node: str | None = None,
    ) -> None:
        check_runnable(warehouse)
        check_tables(warehouse, accepted, "--accept-change")
        feeds = {name: feed for name, feed in warehouse.feeds.items() if node is None or feed.node == node}
        landing = landing_directories(replace(warehouse, feeds=feeds), folder, storage)
        layout = self.layout = StorageLayout(storage)
        control = self.control = layout.control(node)
        self._site = RunSetup(
            warehouse=warehouse,
            node=node,
            landing=landing,
            layout=layout,
            control=control,
            history=history or control.history,
            accepted=accepted,
            master=master,
            settings=settings,
            session=session,
            warm=warm if session is None else "none",
        )
        self._quarantine = quarantine or Quarantine(layout.quarantine)
        self._recounts = quarantine is None
        if quarantine is None and not accept_landing:  # with another one nothing is moved
            loaded = any(layout.tables.glob("*"))
            check_directories(warehouse, landing, control.landing, loaded=loaded)
        self._drain = drain
        self._batches = batches
        self._files_max = files_max
        self._stack = ExitStack()
        self.run_id = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid4().hex[:6]}"
        self._on_start = on_start
        self.on_status: Callable[[WarehouseStatus], None] | None = None
        self.driver: LiveDriver | None = None
        self._ending = RunEnd()

    # -- opening and closing -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException as error:  # by a signal, too: what is open is closed
            self._close(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close(error)
        except (OSError, sqlite3.Error) as failure:
            # A full disk: all is closed, the tables are as they were committed, and there is a run to sum up.
            _logger.warning("at the end of run %s: %s", self.run_id, sentence(failure))

    def _close(self, error: BaseException | None) -> None:
        """Who was interrupted, and not by a failure, waits for nothing: and nothing interrupts that."""
        interrupted = error is not None and not isinstance(error, Exception)
        self._ending.interrupted = interrupted
        self._ending.abandoned = self._ending.abandoned or interrupted
        with signals.held() if interrupted else nullcontext():
            self._stack.close()

    def _open(self) -> None:
        site = self._site
        opened = open_site(site, self.run_id, self._stack, self._ending, self._lose, self._on_start)
        self._session = opened.session
        self.tables, self.readable = opened.tables.tables, opened.tables.readable
        self.said: tuple[str, ...] = opened.tables.said
        self._learning = LearnedPlan(site.warehouse, opened.history)
        self._placed = opened.placed
        freshness = {name: table.freshness for name, table in opened.tables.readable.items()}
        self.kernel = assemble(self.plan, 0, freshness, batches=self._batches, begin=False, node=site.node)
        self.query_side = QueryWork(site, self.plan, self.kernel, opened)
        self.said = (*self.said, *self.query_side.queries.refusals())
        self.request_side = RequestWork(opened.part.local, self.kernel, opened, self._lose)
        if site.warm != "none":
            self.query_side.warm_up()
            self.request_side.warm_up()
        # Only now: what queries are to answer from then on would wait for the end of that, all of it late.
        now = self._count_at = clock()
        self.kernel.begin(now)
        self.keeper = Keeper(opened.part.local, self.plan, self.run_id, now, self._lose, warmth=opened.warmth)
        self.keeper.judge.on_committed = self.query_side.rows.loaded
        self.keeper.reporting.queries = self.query_side.queries.statuses
        self.keeper.reporting.classes = self.request_side.statuses
        self.keeper.observation.resume(self.kernel)
        self.node_side = NodeWork(site, opened, self.keeper)
        self.keeper.notes.counted(len(self._quarantine.entries()))
        inbox = Inbox()
        self._open_loop(opened, inbox, self._open_journal(now, freshness))
        self._open_service(inbox)

    def _open_journal(self, now: int, freshness: dict[str, int | None]) -> Journal:
        log = self._stack.enter_context(
            (self.control.logs / f"{self.run_id}.jsonl").open("w", encoding="utf-8", buffering=1 << 16)
        )
        unknown, node = self._learning.unknown, self._site.node
        return journal_of(
            log, self.run_id, now, freshness, self.plan, unknown=unknown, batches=self._batches, node=node
        )

    def _open_loop(self, opened: RunResources, inbox: Inbox, journal: Journal) -> None:
        """Whoever finds, loads and looks after files, and the driver between them."""
        site, keeper, archive = self._site, self.keeper, self.layout.archive
        notes = keeper.notes
        feeds = LandingFeeds(opened.part.local, site.landing)
        books = LoadRecords(feeds, opened.ledger, opened.history, archive)
        refusals = QuarantineQueue(self._quarantine, notes, inbox.post)
        self.discarding = DiscardControl(opened.part.local)
        self.discarding.recall(self.tables)
        self._watch = FileWatch(
            feeds, books, refusals, notes, self._files_max, warmth=opened.warmth, discarding=self.discarding
        )
        keeper.judge.on_loaded = self.node_side.judge.on_loaded = self._watch.loaded
        last_values = self.discarding.last_values
        updater = Updater(
            site.warehouse, self.tables, opened.schemas, site.landing, last_values, opened.tables.readable
        )
        others = OtherFiles(feeds, self.tables, archive, self._watch.waiting)
        trial = FileTrial(feeds, updater, opened.scratch, others.of)
        locks = {name: Lock() for name in self.tables}
        updates = UpdateRunner(updater, books, locks)
        bad_files = FileBlame(feeds, trial, refusals, self._watch, keeper.troubles.attempts)
        self._tracks = self._new_tracks(updates, bad_files, inbox)
        if opened.warming is not None:
            opened.warming.mind(lambda: self._tracks.idle)
        queries, requests = self.query_side.queries, self.request_side.requests
        self.driver = LiveDriver(
            self.kernel,
            inbox,
            self._tracks,
            journal,
            keeper.observation,
            self._tick,
            look=self._look,
            carry_out=requests.carry_out,
            let_go=requests.close,
        )
        keeper.judge.on_discarded = self._discarded
        queries.attach(self.driver.tell)
        self._draining = DrainControl(
            self._watch, inbox, self.node_side, keeper.troubles, self.driver.tell, self.stop
        )
        self.request_side.attach(inbox.post)
        databases = [self.control.ledger, site.history]
        kept = kept_tables(self.tables, locks, opened.ledger)
        self._housekeeper = Housekeeper(lambda: kept | self.query_side.kept(), databases, notes.note)
        self._stack.callback(self._finish_housekeeping)
        self._watch.start(inbox.post)
        self._stack.callback(self._watch.stop)
        self.node_side.following.start(inbox.post)
        self._stack.callback(self.node_side.following.stop)

    def _new_tracks(self, updates: UpdateRunner, bad_files: FileBlame, inbox: Inbox) -> Tracks:
        session = self._session
        # By track; clusters of a pool share Spark's.
        pools = [pool.name.partition("/")[0] for pool in self.kernel.pools for _ in range(pool.tracks)]

        def worker(track: int) -> SparkWorker:
            return SparkWorker(session, pools[track], track, updates, bad_files)

        def tell(message: JobEnded | JobPutAside) -> None:
            if isinstance(message, JobEnded) and isinstance(message.outcome, Exception):
                gone = spark_ended(session)
                message = message if gone is None else replace(message, outcome=gone)
            inbox.post(message)

        kinds: Kinds = {
            Update: JobKind(worker, self.keeper.judge),
            StepJob: self.node_side.kind(worker),
            Iteration: self.query_side.kind(pools, self._lose),
            RequestPart: self.request_side.kind(pools),
        }
        return Tracks(len(pools), kinds, tell)

    def _open_service(self, inbox: Inbox) -> None:
        """Whoever may read the storage can ask the run; one that cannot be asked is run all the same."""
        from freshline.service.server import (
            serving,
        )  # FastAPI takes a second to import: Spark is there by now

        self._published = self.status()
        if not self.node_side.answers_for_all:
            return
        side, site = self.query_side, self._site
        applying = EditApplier(site.warehouse, inbox.post, side.prepare, side.queries.decide, site.node)
        inquiries = LiveWarehouse(
            lambda: self.node_side.status_of_all(self._published),
            self.node_side.results,
            applying,
            self.request_side.ask,
        )
        try:
            self._stack.enter_context(serving(inquiries, self.control.service))
        except OSError as error:
            self.keeper.notes.note(clock(), f"nobody can ask this run: no service: {sentence(error)}")
        self._stack.callback(applying.close)

    def _finish_housekeeping(self) -> None:
        for _ in range(10 * _HOUSEKEEPING_MAX_S):  # in parts, or nobody could hasten it
            self._housekeeper.finish(0.0 if self._ending.abandoned else 0.1)

    # -- running -----------------------------------------------------------------------------------------

    def run(self, for_us: int | None = None) -> None:
        """Runs until stopped, for so long, or (draining) until there is nothing left to load."""
        assert self.driver is not None, "the runner is not open"
        ended = not self.lost and self.driver.run(None if for_us is None else clock() + for_us)
        if not ended:
            with suppress(Py4JError, OSError):  # there may be no Spark any more
                self._session.sparkContext.cancelAllJobs()
            # One that was about to commit does so while the storage is ours.
            self._tracks.finish_cancelled(_CANCELLED_MAX_S)

    def stop(self, why: str) -> None:
        self._ending.because = self._ending.because or why
        if self.driver is not None:
            self.driver.stop()

    def abandon(self) -> None:
        """A run that is to stop waits no longer: what is not committed is loaded by the next one."""
        self._ending.abandoned = True
        if self.driver is not None:
            self.driver.abandon()

    def status(self) -> WarehouseStatus:
        return self.keeper.reporting.status(max(clock(), self.kernel.now), self.kernel)

    @property
    def plan(self) -> Plan:
        """With the costs that are known by now."""
        return replace(self._learning.plan, placed=self._placed)

    @property
    def incomplete(self) -> bool:
        """Whether it was to leave nothing out, and another node did not let it."""
        return self._draining.in_vain

    @property
    def stopped_because(self) -> str | None:
        return self._ending.because

    @property
    def lost(self) -> bool:
        """Whether it had to stop: somebody else has the storage, or Spark is gone."""
        return self._ending.lost

    def _lose(self, why: str) -> None:
        self._ending.lost = True
        self._ending.because = why
        self.stop(why)

    def _look(self, now: int) -> None:
        self.query_side.queries.look(now)
        self.discarding.look(now, self.kernel)

    def _discarded(self, table: str, files: int) -> None:
        """The pool's policy hears what time it has gained."""
        definition = self.plan.warehouse.tables[table]
        if self.driver is not None and definition.cost is not None:  # it is learned, perhaps not yet
            cost_us = average_us(definition.cost, definition.period_us)
            self.driver.tell(UpdateDiscarded(table, files * cost_us))

    def _tick(self, now: int, kernel: Kernel) -> None:
        self._publish(self.keeper.look(now, kernel))
        self.node_side.tell_costs(now)
        stopping = self.driver is None or self.driver.stopping
        if self._recounts and (now >= self._count_at or stopping):
            self._count_at = now + _COUNT_EVERY_US
            self.keeper.notes.counted(self._quarantine.count())
        if stopping:
            return  # nothing is begun any more
        if not self._draining.begun:
            self._learn(now)
        self._housekeeper.consider(now, kernel)
        if self._drain:
            self._draining.consider(now, kernel)

    def _learn(self, now: int) -> None:
        """Where costs have become known the kernel goes on with them, and with the bounds that they give."""
        if self._learning.look(now):
            assert self.driver is not None
            self.driver.tell(learned(self.kernel, self.plan))
            self.keeper.learn(self.plan)
        batches = self._learning.batches(now, tables_of(self.kernel))
        if batches:
            assert self.driver is not None
            self.driver.tell(BatchCostsLearned(batches))

    def _publish(self, status: WarehouseStatus) -> None:
        with suppress(OSError):  # a full disk; that the file is old can be seen in it
            status.write(self.control.status)
        self._published = status
        if self.on_status is not None:
            self.on_status(status)
