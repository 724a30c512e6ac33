"""The books of a live run: failures, quarantine, observed staleness, broken assumptions, status."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from freshline.definitions.duration import SECOND, format_duration
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.events import Event, Failed, Finished
from freshline.kernel.intake import FileIntake
from freshline.kernel.kernel import Kernel
from freshline.kernel.task import RUNNING, Task
from freshline.live.driver import Ended, clock
from freshline.live.status import TableStatus, TrackStatus, WarehouseStatus, table_state
from freshline.live.trouble import ATTEMPTS_MAX, Trouble, is_about_data, sentence
from freshline.plan.plan import Plan
from freshline.spark.updater import Update
from freshline.storage.delta import TableTaken

_NOTES_MAX = 50


@dataclass(slots=True)
class TableBooks:
    """What is remembered of one table during a run."""

    rows: int = 0
    rows_late: int = 0
    jobs: int = 0
    staleness_us_max: int | None = None
    lag_us_max: int | None = None
    recovering: bool = False
    trouble: Trouble = field(default_factory=Trouble)
    samples: list[tuple[int, int]] = field(default_factory=list)  # (instant, staleness)


class Keeper:
    """Keeps the books and judges how jobs ended. Everything here happens in the driver's thread."""

    def __init__(
        self,
        warehouse: Warehouse,
        plan: Plan,
        run_id: str,
        started: int,
        put_aside: Callable[[Ended, str], bool],
        stop: Callable[[str], None],
        publish: Callable[[WarehouseStatus], None],
    ) -> None:
        self.warehouse = warehouse
        self.books = {name: TableBooks() for name in warehouse.tables}
        self.notes: deque[str] = deque(maxlen=_NOTES_MAX)  # assumptions of the bounds that did not hold
        self.quarantined = 0
        self.last_arrival: dict[str, int] = {}  # by feed
        self._silent_feeds: set[str] = set()
        self.keep_samples = False
        self._run_id = run_id
        self._started = started
        self._put_aside = put_aside
        self._stop = stop
        self._publish = publish
        self.on_tick: Callable[[int, Kernel], None] | None = None
        self.on_loaded: Callable[[str, list[str]], None] | None = None
        self.learn(plan)

    # -- judging ends ------------------------------------------------------------------------------

    def judge(self, ended: Ended, now: int) -> Event:
        job, outcome = ended.job, ended.outcome
        if isinstance(outcome, Update):
            self._observe(job.task, now)
            books = self.books[job.task.name]
            books.rows += outcome.rows
            books.rows_late += outcome.rows_late
            books.jobs += 1
            if books.trouble.attempts:  # what piled up meanwhile has a known reason
                books.recovering = True
            books.trouble = Trouble()
            self._check_cost(ended)
            if self.keep_samples:
                books.samples.append((now, now - outcome.freshness))
            self._loaded(ended)
            return Finished(job, outcome.freshness)
        assert isinstance(outcome, BaseException)
        return self._failed(ended, outcome, now)

    def _failed(self, ended: Ended, error: BaseException, now: int) -> Event:
        job = ended.job
        trouble = self.books[job.task.name].trouble
        trouble.attempts += 1
        trouble.reason = sentence(error)
        if isinstance(error, TableTaken):
            self._stop(f"another runner wrote to table {job.task.name}: this one stops")
        elif self._is_hopeless(ended, error) and self._put_aside(ended, trouble.reason):
            count = len(job.files)
            self.note(now, f"{job.task.name}: {count} file(s) put into quarantine: {trouble.reason}")
            self.books[job.task.name].trouble = Trouble()
            self._loaded(ended)
            # The files are gone; the table stays as fresh as it was and goes on with the next.
            return Finished(job, job.loaded_from)
        self.note(now, f"{job.task.name}: attempt {trouble.attempts} failed: {trouble.reason}")
        return Failed(job, trouble.retry_at(now))

    def _is_hopeless(self, ended: Ended, error: BaseException) -> bool:
        """Whether trying again is no use: it was tried, and the files themselves are at fault."""
        attempts = self.books[ended.job.task.name].trouble.attempts
        return bool(ended.job.files) and attempts >= ATTEMPTS_MAX and is_about_data(error)

    def _loaded(self, ended: Ended) -> None:
        if self.on_loaded is not None and ended.job.files:
            self.on_loaded(ended.job.task.name, [str(file.name) for file in ended.job.files])

    def _check_cost(self, ended: Ended) -> None:
        assumed_us = ended.job.task.worst_case_us
        took_us = ended.at - ended.job.start
        if took_us > assumed_us:
            took, assumed = format_duration(took_us, up=True), format_duration(assumed_us)
            self.note(
                ended.at, f"{ended.job.task.name}: an update took {took}, assumed were at most {assumed}"
            )

    def refused(self, feed: str, name: str, reason: str) -> None:
        """A file was put into quarantine before any job saw it."""
        self.quarantined += 1
        self.note(clock(), f"{feed}: {name} put into quarantine: {reason}")

    def note(self, at: int, text: str) -> None:
        self.notes.append(f"+{format_duration(at - self._started)} {text}")

    # -- observing -----------------------------------------------------------------------------------

    def _observe(self, task: Task, now: int) -> None:
        """Staleness and lag just before they change; nothing to say before the first load."""
        if task.empty:
            return
        books = self.books[task.name]
        staleness_us = now - task.freshness
        lag_us = max(0, task.intake.trailing_edge(now) - task.freshness)
        books.staleness_us_max = max(books.staleness_us_max or 0, staleness_us)
        books.lag_us_max = max(books.lag_us_max or 0, lag_us)
        if self.keep_samples:
            books.samples.append((now, staleness_us))

    def tick(self, now: int, kernel: Kernel) -> None:
        for task in kernel.tasks:
            self._observe(task, now)
        for feed in self.warehouse.feeds:
            if feed not in self._silent_feeds and self._feed_silent(feed, now):
                self._silent_feeds.add(feed)
                self.note(now, f"feed {feed} has gone silent")
        self._publish(self.status(now, kernel))
        if self.on_tick is not None:
            self.on_tick(now, kernel)

    def learn(self, plan: Plan) -> None:
        """Costs became known, and bounds with them."""
        self._plans = {table.name: table for table in plan.tables}

    # -- status ----------------------------------------------------------------------------------------

    def status(self, now: int, kernel: Kernel) -> WarehouseStatus:
        tasks = {task.name: task for task in kernel.tasks}
        rows: dict[str, TableStatus] = {}
        for name in self.warehouse.topological_order:
            rows[name] = self._table_status(tasks[name], now, rows)
        tracks = tuple(
            TrackStatus(track, pool.name, job.task.name if job else None, job.start if job else None)
            for pool in kernel.pools
            for track in range(pool.tracks_from, pool.tracks_from + pool.tracks)
            for job in [pool.running.get(track)]
        )
        return WarehouseStatus(
            name=self.warehouse.name,
            run_id=self._run_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            at_us=now,
            started_us=self._started,
            tables=tuple(rows[name] for name in self.warehouse.tables),
            tracks=tracks,
            broken_assumptions=tuple(self.notes),
            quarantined=self.quarantined,
        )

    def _table_status(self, task: Task, now: int, above: Mapping[str, TableStatus]) -> TableStatus:
        books, plan = self.books[task.name], self._plans[task.name]
        sources = [above[source] for source in self.warehouse.tables[task.name].sources]
        edge = task.intake.trailing_edge(now)
        lag_us = None if task.empty else max(0, edge - task.freshness)
        if lag_us is not None and lag_us <= task.period_us:
            books.recovering = False
        backlog = 0
        if isinstance(task.intake, FileIntake):
            backlog = len(task.intake.pending) + (len(task.job.files) if task.job else 0)
        state = table_state(
            loaded=not task.empty,
            lag_us=lag_us,
            period_us=task.period_us,
            staleness_bound_us=plan.staleness_bound_us,
            silent=self._silent(task.name, now),
            failed=books.trouble.attempts > 0,
            upstream_failed=any(source.state in ("FAILED", "UPSTREAM_FAILED") for source in sources),
            recovering=books.recovering,
        )
        return TableStatus(
            name=task.name,
            state=state,
            freshness_us=None if task.empty else task.freshness,
            trailing_edge_us=edge or None,
            staleness_bound_us=plan.staleness_bound_us,
            target_lag_us=plan.target_lag_us,
            period_us=task.period_us,
            backlog=backlog,
            loaded_rows=books.rows,
            late_rows=books.rows_late,
            jobs=books.jobs,
            message=books.trouble.reason or None,
            staleness_max_us=books.staleness_us_max,
            lag_max_us=books.lag_us_max,
            running_on=task.job.track if task.state == RUNNING and task.job else None,
        )

    def arrived(self, feed: str, at: int) -> None:
        """A file came. After a silence its tables have a backlog to work off, for a known reason."""
        if self._feed_silent(feed, at):
            for table in self.warehouse.tables.values():
                if table.feed == feed:
                    self.books[table.name].recovering = True
        self._silent_feeds.discard(feed)
        self.last_arrival[feed] = at

    def _silent(self, table: str, now: int) -> bool:
        feed = self.warehouse.tables[table].feed
        return feed is not None and self._feed_silent(feed, now)

    def _feed_silent(self, name: str, now: int) -> bool:
        feed = self.warehouse.feeds[name]
        assert feed.period_us is not None
        last = self.last_arrival.get(name, self._started)
        # Paper 001, Definition 2; a second for finding it.
        return now - last > feed.period_us + feed.jitter_us + SECOND
