"""A warehouse running on Spark: everything that belongs to it, opened and closed in order."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from freshline import __version__, signals
from freshline.assembly.assemble import assemble
from freshline.assembly.terms import learned
from freshline.costs.fit import RUNS_LEAST
from freshline.costs.learned import learned_costs
from freshline.definitions.cost import Cost
from freshline.definitions.duration import SECOND
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.journal import Journal
from freshline.kernel.kernel import Kernel
from freshline.landing.directories import check_directories, landing_directories, remember_directories
from freshline.live.changes import check_tables, open_tables
from freshline.live.clock import clock
from freshline.live.driver import LiveDriver
from freshline.live.heartbeat import Heartbeat
from freshline.live.housekeeping import Housekeeper
from freshline.live.keeper import Keeper
from freshline.live.kinds import Kind
from freshline.live.messages import Ended, Inbox
from freshline.live.refusals import Refusals
from freshline.live.status import WarehouseStatus
from freshline.live.tracks import Tracks
from freshline.live.trial import Trial
from freshline.live.trouble import ATTEMPTS_MAX, sentence, spark_ended
from freshline.live.watch import Watch
from freshline.live.worker import Books, SparkWorker
from freshline.plan.make import make_plan, without_bounds
from freshline.plan.plan import Plan
from freshline.spark.frames import schemas
from freshline.spark.java import end_java
from freshline.spark.session import is_local, open_session
from freshline.spark.updater import Updater
from freshline.spark.warm_up import warm_up
from freshline.storage.history import History
from freshline.storage.layout import Layout
from freshline.storage.lease import Identity, Lease
from freshline.storage.ledger import Ledger
from freshline.storage.modes import modes_of
from freshline.storage.quarantine import Quarantine
from freshline.storage.scratch import scratch_folder
from freshline.tables.drain import Drain, nothing_is_left, only_rest_is_left
from freshline.tables.update import Update

_logger = logging.getLogger(__name__)
_LEARN_EVERY_US = 10 * SECOND
_COUNT_EVERY_US = 3 * SECOND
_HOUSEKEEPING_MAX_S = 30
_CANCELLED_MAX_S = 2.0
# For the last that loaded files: others only compact, or clean up.
_COMMITS_SEARCHED = 10
# What is assumed of a table before it has ever run: it gets no bound, and its pool none.
_PROVISIONAL = Cost(SECOND, Fraction(1, 10))


class Runner:
    """Holds the storage's lease, the Spark session, the tables and the loop. Use it in a `with`.

    `drain`: stop when there is nothing left to load, instead of waiting for more, or for the releases of
    derived tables; `files_max`: of each feed at most so many files; `accepted`: tables that were changed and
    go on all the same; `accept_landing`: directories that do not look like landing directories are. History
    and quarantine are the storage's unless others are given.
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
        warm: bool = True,
        accepted: Sequence[str] = (),
        accept_landing: bool = False,
    ) -> None:
        check_runnable(warehouse)
        check_tables(warehouse, accepted, "--accept-change")
        self._accepted = accepted
        self._landing = landing_directories(warehouse, folder, storage)
        self._declared = warehouse
        self.layout = Layout(storage)
        self._master = master
        self._settings = settings
        self._given_session = session
        self._history_path = history or self.layout.history
        self._quarantine = quarantine or Quarantine(self.layout.quarantine)
        self._recounts = quarantine is None
        if quarantine is None and not accept_landing:  # with another one nothing is moved
            loaded = any(self.layout.tables.glob("*"))
            check_directories(warehouse, self._landing, self.layout.landing, loaded=loaded)
        self._drain = drain
        self._files_max = files_max
        self._warm = warm and session is None
        self._stack = ExitStack()
        self.run_id = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid4().hex[:6]}"
        self.on_status: Callable[[WarehouseStatus], None] | None = None
        self.stopped_because: str | None = None
        self.driver: LiveDriver | None = None
        self.lost = False  # whether it had to stop: somebody else has the storage, or Spark is gone
        self._draining = False  # whether the kernel was told so
        self._abandoned = False
        self._interrupted = False

    # -- opening and closing -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException as error:
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
        self._interrupted = error is not None and not isinstance(error, Exception)
        self._abandoned = self._abandoned or self._interrupted
        with signals.held() if self._interrupted else nullcontext():
            self._stack.close()

    def _open(self) -> None:
        stack, layout = self._stack, self.layout
        self._open_storage()
        self._open_spark()
        signals.check()
        self._history = stack.enter_context(History(self._history_path))
        self._ledger = Ledger(layout.ledger)
        stack.callback(self._ledger.close)
        self._open_tables()
        signals.check()
        self.plan, self._provisional = self._make_plan(self._declared)
        now = clock()
        freshness = {name: table.freshness for name, table in self.tables.items()}
        self.kernel = assemble(self.plan, now, freshness)
        self.keeper = Keeper(self._declared, self.plan, self.run_id, now, self._lose)
        self.keeper.observation.resume(self.kernel)
        self.keeper.notes.counted(len(self._quarantine.entries()))
        self._open_loop(now, freshness)

    def _open_storage(self) -> None:
        stack, layout = self._stack, self.layout
        layout.prepare(private=is_local(self._master))
        stack.enter_context(modes_of(layout.root))
        identity = Identity.mine(self.run_id)
        lease = Lease.acquire(layout.lease, identity)
        stack.callback(lease.release)
        heartbeat = Heartbeat(lease, self._lose)
        heartbeat.start()
        stack.callback(heartbeat.stop)
        layout.clear(identity)
        remember_directories(self._landing, layout.landing)
        self._scratch = stack.enter_context(scratch_folder(layout.scratch, identity, has_lease=True))

    def _open_spark(self) -> None:
        if self._given_session is not None:
            self._session = self._given_session
            return
        # Before: it may be interrupted when Spark is there and nobody knows.
        self._stack.callback(lambda: self._interrupted and end_java())
        local = self._scratch / "spark"
        self._session = open_session(self._declared.name, self._master, self._settings, local)
        self._stack.callback(self._stop_spark)

    def _open_tables(self) -> None:
        self._schemas = schemas(self._session, self._declared)
        opened = open_tables(self._declared, self.layout, self._schemas, self._accepted)
        self.tables, self.said = opened.tables, opened.said
        for name, table in self.tables.items():
            self._ledger.catch_up(name, table)
        self.locks = {name: Lock() for name in self.tables}
        if self._warm:
            tracks = sum(pool.tracks for pool in self._declared.pools.values())
            warm_up(self._session, self._declared, self._schemas, self._scratch / "warm-up", tracks)

    def _open_loop(self, now: int, freshness: Mapping[str, int | None]) -> None:
        books = Books(self._declared, self._ledger, self._history, self._landing, self.layout.archive)
        inbox = Inbox()
        notes = self.keeper.notes
        self._refusals = Refusals(self._quarantine, notes, inbox.post)
        self._watch = Watch(
            self._declared, self._landing, self._ledger, self._refusals, notes, books, self._files_max
        )
        self.keeper.judge.on_loaded = self._watch.loaded
        updater = Updater(self._declared, self.tables, self._schemas, self._landing, self._watch.file)
        trial = Trial(self._declared, updater, self._landing, self._scratch, self._other_files)
        pool_of_track = [pool.name for pool in self.plan.pools for _ in range(pool.tracks)]

        def worker(track: int) -> SparkWorker:
            return SparkWorker(
                self._session,
                pool_of_track[track],
                track,
                updater,
                books,
                self.locks,
                self.keeper.troubles.attempts,
                trial,
                self._put_aside,
                self._watch.leave,
            )

        def tell(ended: Ended) -> None:
            gone = spark_ended(self._session) if isinstance(ended.outcome, Exception) else None
            inbox.post(ended if gone is None else replace(ended, outcome=gone))

        self._tracks = Tracks(len(pool_of_track), {Update: Kind(worker, self.keeper.judge)}, tell)
        log = self._stack.enter_context(
            (self.layout.logs / f"{self.run_id}.jsonl").open("w", encoding="utf-8", buffering=1 << 16)
        )
        header = {"freshline": __version__, "run": self.run_id, "now": now, "freshness": dict(freshness)}
        if self._provisional:
            header["unknown"] = sorted(self._provisional)
        self._journal = Journal(log, {**header, "warehouse": to_record(self.plan.warehouse)})
        self.driver = LiveDriver(
            self.kernel, inbox, self._tracks, self._journal, self.keeper.observation, self._tick
        )
        databases = [self.layout.ledger, self._history_path]
        self._housekeeper = Housekeeper(self.tables, self.locks, self._ledger, databases, notes.note)
        self._stack.callback(self._finish_housekeeping)
        self._learn_at = self._count_at = now
        self._watch.start(inbox.post)
        self._stack.callback(self._watch.stop)

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
        self.stopped_because = self.stopped_because or why
        if self.driver is not None:
            self.driver.stop()

    def abandon(self) -> None:
        """A run that is to stop waits no longer: what is not committed is loaded by the next one."""
        self._abandoned = True
        if self.driver is not None:
            self.driver.abandon()

    def status(self) -> WarehouseStatus:
        return self.keeper.reporting.status(max(clock(), self.kernel.now), self.kernel)

    def _lose(self, why: str) -> None:
        self.lost = True
        self.stopped_because = why
        self.stop(why)

    def _tick(self, now: int, kernel: Kernel) -> None:
        self._publish(self.keeper.look(now, kernel))
        stopping = self.driver is None or self.driver.stopping
        if self._recounts and (now >= self._count_at or stopping):
            self._count_at = now + _COUNT_EVERY_US
            self.keeper.notes.counted(_files_below(self.layout.quarantine / "files"))
        if stopping:
            return  # nothing is begun any more
        if self._provisional and now >= self._learn_at and not self._draining:
            self._learn_at = now + _LEARN_EVERY_US
            self._learn()
        self._housekeeper.consider(now, kernel)
        if self._drain and self._watch.is_quiet():
            self._consider_ending(kernel)

    def _consider_ending(self, kernel: Kernel) -> None:
        """Ends when nothing is left to load. Nobody waits for periods: nothing more will come."""
        assert self.driver is not None
        if nothing_is_left(kernel, self._is_given_up):
            self.stop("nothing is left to load")
        elif not self._draining and only_rest_is_left(kernel):
            self._draining = True
            self.driver.tell(Drain())

    def _is_given_up(self, table: str) -> bool:
        return self._draining and self.keeper.troubles.attempts(table) >= ATTEMPTS_MAX

    def _finish_housekeeping(self) -> None:
        for _ in range(10 * _HOUSEKEEPING_MAX_S):  # in parts, or nobody could hasten it
            self._housekeeper.finish(0.0 if self._abandoned else 0.1)

    def _stop_spark(self) -> None:
        if self._interrupted and end_java():
            return
        try:
            self._session.stop()
        except (Py4JError, OSError):
            if not self.lost:
                raise

    # -- costs -------------------------------------------------------------------------------------------

    def _make_plan(self, warehouse: Warehouse) -> tuple[Plan, frozenset[str]]:
        """The plan with declared and learned costs, and the tables without any: they get no bound."""
        found = learned_costs(warehouse, self._history)
        unknown = frozenset(name for name, table in found.warehouse.tables.items() if table.cost is None)
        tables = {
            name: replace(table, cost=table.cost or _PROVISIONAL)
            for name, table in found.warehouse.tables.items()
        }
        plan = make_plan(replace(found.warehouse, tables=tables), found.runs)
        return without_bounds(plan, unknown), unknown

    def _learn(self) -> None:
        """Where costs have become known the kernel goes on with them, and with the bounds that they give."""
        # Asked first, for a table of few runs costs little to look up, and fitting all the others much.
        if not any(len(self._history.runs(name)) >= RUNS_LEAST for name in self._provisional):
            return
        plan, unknown = self._make_plan(self._settled())
        if unknown == self._provisional:
            return
        assert self.driver is not None
        self.driver.tell(learned(self.kernel, plan))
        self.keeper.learn(plan)
        self.plan, self._provisional = plan, unknown

    def _settled(self) -> Warehouse:
        """What is declared, and what was learned where a pool lacks no cost: its bounds count with that."""
        open_pools = {self._declared.tables[name].pool for name in self._provisional}
        counted = self.plan.warehouse.tables
        tables = {
            name: table if table.pool in open_pools else replace(table, cost=counted[name].cost)
            for name, table in self._declared.tables.items()
        }
        return replace(self._declared, tables=tables)

    # -- outside -----------------------------------------------------------------------------------------

    def _publish(self, status: WarehouseStatus) -> None:
        with suppress(OSError):  # a full disk; that the file is old can be seen in it
            status.write(self.layout.status)
        if self.on_status is not None:
            self.on_status(status)

    def _put_aside(self, table: str, name: str, reason: str) -> None:
        """Moves a file that a table cannot load into quarantine."""
        feed = self._declared.tables[table].feed
        assert feed is not None
        attempts = self.keeper.troubles.attempts(table) + 1
        self._refusals.put(feed, name, self._landing[feed] / name, reason, attempts)

    def _other_files(self, table: str) -> list[Path]:
        """Files of a table's feed: the last that it has loaded, then those that wait, newest first."""
        feed, stored = self._declared.tables[table].feed, self.tables[table]
        assert feed is not None
        commits = [files for _, files in stored.consumed_since(max(-1, stored.version - _COMMITS_SEARCHED))]
        loaded = [file.name for files in reversed(commits) for file in files][:1]
        paths = [
            folder / name
            for name in (*loaded, *reversed(self._watch.waiting(feed)))
            for folder in (self._landing[feed], self.layout.archive / feed)
        ]
        return [path for path in paths if path.is_file()]


def _files_below(folder: Path) -> int:
    """How many files are there, not counting those that are being written."""
    return sum(not name.startswith(".") for _, _, names in os.walk(folder) for name in names)
