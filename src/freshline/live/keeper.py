"""The books of a live run: failures, quarantine, observed staleness, broken assumptions, status."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from threading import Lock

from freshline.definitions.duration import format_duration
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.events import Event, Failed
from freshline.kernel.kernel import Kernel
from freshline.kernel.task import RUNNING
from freshline.live.clock import clock
from freshline.live.driver import Ended, Landed
from freshline.live.feed_health import FeedHealth
from freshline.live.recoveries import Due, Recoveries, dues
from freshline.live.status import PoolStatus, TableStatus, TrackStatus, WarehouseStatus
from freshline.live.trouble import SparkEnded, Trouble, sentence
from freshline.plan.plan import Plan
from freshline.recovery.aus import given_up
from freshline.recovery.modes import is_recovering, recovery_rule
from freshline.spark.updater import Committed
from freshline.storage.delta import TableTaken
from freshline.tables.asserted import Asserted
from freshline.tables.events import Finished
from freshline.tables.state import table_state
from freshline.tables.task import TableTask, tables_of

_NOTES_MAX = 50


@dataclass(frozen=True, slots=True)
class Overruns:
    """A table's updates that took longer than assumed, and the worst of them."""

    count: int
    took_us: int
    assumed_us: int
    at: int

    def __str__(self) -> str:
        took, assumed = format_duration(self.took_us, up=True), format_duration(self.assumed_us)
        if self.count == 1:
            return f"an update took {took}, assumed were at most {assumed}"
        return f"{self.count} updates took longer than assumed, at worst {took} instead of {assumed}"


@dataclass(slots=True)
class TableBooks:
    """What is remembered of one table during a run."""

    rows: int = 0
    rows_late: int = 0
    jobs: int = 0
    staleness_max_us: int | None = None
    lag_max_us: int | None = None
    asserted_max_us: int | None = None  # the worst staleness while its bound was asserted
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
        stop: Callable[[str], None],
        publish: Callable[[WarehouseStatus], None],
    ) -> None:
        self.warehouse = warehouse
        self.books = {name: TableBooks() for name in warehouse.tables}
        sources = {name: warehouse.tables[name].sources for name in warehouse.topological_order}
        self.asserted = Asserted(sources)
        self._notes: deque[tuple[int, str]] = deque(maxlen=_NOTES_MAX)
        self._overruns: dict[str, Overruns] = {}  # by table: one note each, or they would push out all others
        self._recoveries = Recoveries(started)
        # By pool: how often it fell back to aus, when last, and why.
        self._given_up: dict[str, tuple[int, int, str]] = {}
        self.quarantined = 0
        self._counting = Lock()  # files are refused by the thread that finds them, and by tracks
        self.feeds = {name: FeedHealth(feed, started) for name, feed in warehouse.feeds.items()}
        self._came: dict[str, int] = {}  # by feed: when its first file came, loaded or refused
        self.keep_samples = False
        self._run_id = run_id
        self._started = started
        self._stop = stop
        self._publish = publish
        self.on_tick: Callable[[int, Kernel], None] | None = None
        self.on_loaded: Callable[[str, list[str]], None] | None = None
        self.learn(plan)

    # -- judging ends ------------------------------------------------------------------------------

    def judge(self, ended: Ended, now: int) -> Event:
        job, outcome = ended.job, ended.outcome
        self._notice(job.task, now)  # before the kernel hears of the end, and it may be over
        if isinstance(outcome, BaseException):
            return self._failed(ended, outcome, now)
        self._observe(job.task, now)
        books = self.books[job.task.name]
        if books.trouble.attempts:  # what piled up meanwhile has a known reason
            books.recovering = True
        books.trouble = Trouble()
        if self.on_loaded is not None and job.files:
            self.on_loaded(job.task.name, [str(file.name) for file in job.files])
        if outcome is None:  # its files were put aside; the table stays as fresh as it was
            return Finished(job, job.loaded_from)
        assert isinstance(outcome, Committed)
        books.rows += outcome.rows
        books.rows_late += outcome.rows_late
        books.jobs += 1
        self._check_cost(ended)
        if self.keep_samples:
            books.samples.append((now, now - outcome.freshness))
        self._assert_bound(ended, outcome.freshness)
        return Finished(job, outcome.freshness)

    def _failed(self, ended: Ended, error: BaseException, now: int) -> Event:
        job = ended.job
        trouble = self.books[job.task.name].trouble
        trouble.attempts += 1
        trouble.reason = sentence(error)
        self.asserted.suspend([job.task.name])
        if isinstance(error, TableTaken):
            self._stop(f"another runner wrote to table {job.task.name}: this one stops")
        if isinstance(error, SparkEnded):
            self._stop(str(error))
        self.note(now, f"{job.task.name}: attempt {trouble.attempts} failed: {trouble.reason}")
        return Failed(job, trouble.retry_at(now))

    def attempts(self, table: str) -> int:
        """How often the table's present job has failed already."""
        return self.books[table].trouble.attempts

    def _check_cost(self, ended: Ended) -> None:
        name, assumed_us = ended.job.task.name, ended.job.worst_case_us
        took_us = ended.at - ended.job.start
        if took_us <= assumed_us:
            return
        worst = self._overruns.get(name, Overruns(0, 0, 0, 0))
        if took_us > worst.took_us:
            self._overruns[name] = Overruns(worst.count + 1, took_us, assumed_us, ended.at)
        else:
            self._overruns[name] = replace(worst, count=worst.count + 1)

    def refused(self, feed: str, name: str, reason: str) -> None:
        """A file was put into quarantine. They are counted anew now and then, for people take them out."""
        with self._counting:
            self.quarantined += 1
        self.note(clock(), f"{feed}: {name} put into quarantine: {reason}")

    def note(self, at: int, text: str) -> None:
        self._notes.append((at, text))

    @property
    def notes(self) -> list[str]:
        """Assumptions of the bounds that did not hold, oldest first; overruns as of the worst one."""
        overruns = [(worst.at, f"{table}: {worst}") for table, worst in self._overruns.items()]
        overruns += [
            (at, f"pool {pool} fell back to aus, {count} in all: {why}")
            for pool, (count, at, why) in self._given_up.items()
        ]
        notes = sorted([*self._notes, *overruns], key=itemgetter(0))
        return [f"+{format_duration(at - self._started)} {text}" for at, text in notes]

    # -- observing -----------------------------------------------------------------------------------

    def _observe(self, task: TableTask, now: int) -> None:
        """Staleness and lag just before they change; nothing to say before the first load."""
        if task.empty:
            return
        books = self.books[task.name]
        staleness_us = now - task.freshness
        lag_us = max(0, task.intake.trailing_edge(now) - task.freshness)
        books.staleness_max_us = max(books.staleness_max_us or 0, staleness_us)
        books.lag_max_us = max(books.lag_max_us or 0, lag_us)
        if task.name in self.asserted:
            books.asserted_max_us = max(books.asserted_max_us or 0, staleness_us)
        if self.keep_samples:
            books.samples.append((now, staleness_us))

    def tick(self, now: int, kernel: Kernel) -> None:
        self._note_silence(now)
        for task in tables_of(kernel):
            self._observe(task, now)
            self._notice(task, now)
        self._note_given_up(kernel)
        self._publish(self.status(now, kernel))
        if self.on_tick is not None:
            self.on_tick(now, kernel)

    def _notice(self, task: TableTask, now: int) -> None:
        self._recoveries.notice(task, now, self._plans[task.name].expected)

    def _note_silence(self, now: int) -> None:
        for feed in self.feeds.values():
            silence = feed.tell_silence(now)
            if silence is not None:
                self.note(now, silence)
        dry = {name for name, feed in self.feeds.items() if feed.is_dry(now)}
        self.asserted.suspend(name for name, table in self.warehouse.tables.items() if table.feed in dry)

    def _note_given_up(self, kernel: Kernel) -> None:
        for pool in kernel.pools:
            for at, why in given_up(pool):
                count, noted_at, _ = self._given_up.get(pool.name, (0, -1, ""))
                if at > noted_at:
                    self._given_up[pool.name] = (count + 1, at, why)

    def learn(self, plan: Plan) -> None:
        """Costs became known, and bounds with them."""
        self._plans = {table.name: table for table in plan.tables}
        self._pools = tuple(
            PoolStatus(pool.name, pool.policy, pool.behaves_as(plan.tables)) for pool in plan.pools
        )

    # -- which bounds are asserted -----------------------------------------------------------------------

    def _assert_bound(self, ended: Ended, freshness: int) -> None:
        name = ended.job.task.name
        feed = self._feed(name)
        delivers = feed is None or not (feed.is_dry(ended.at) or feed.is_old)
        bound_us = self._plans[name].staleness_bound_us
        self.asserted.ended(ended.job, freshness, ended.at, bound_us, delivers)

    @property
    def asserted_max_us(self) -> dict[str, int | None]:
        """By table, the worst staleness while its bound was asserted."""
        return {name: books.asserted_max_us for name, books in self.books.items()}

    # -- status ----------------------------------------------------------------------------------------

    def status(self, now: int, kernel: Kernel) -> WarehouseStatus:
        tasks = {task.name: task for task in tables_of(kernel)}
        due = dues(kernel, now)
        rows: dict[str, TableStatus] = {}
        for name in self.warehouse.topological_order:
            task = tasks[name]
            rows[name] = self._table_status(task, now, rows, due.get(task.name))
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
            recoveries=tuple(self._recoveries.lines(kernel, now, due, self._plans)),
            pools=self._pools,
        )

    def _table_status(
        self, task: TableTask, now: int, above: Mapping[str, TableStatus], due: Due | None
    ) -> TableStatus:
        books, plan, feed = self.books[task.name], self._plans[task.name], self._feed(task.name)
        sources = [above[source] for source in self.warehouse.tables[task.name].sources]
        came_us = _last(source.came_us for source in sources) if feed is None else self._came.get(feed.name)
        edge = task.intake.trailing_edge(now)
        lag_us = None if task.empty else max(0, edge - task.freshness)
        if any(source.state == "RECOVERING" for source in sources):
            books.recovering = True  # what its sources catch up with comes down to it
        elif lag_us is not None and lag_us <= task.period_us:
            books.recovering = False
        rule = recovery_rule(task)
        state = table_state(
            loaded=not task.empty,
            lag_us=lag_us,
            period_us=task.period_us,
            staleness_bound_us=rule.terms.threshold_us if rule else plan.staleness_bound_us,
            silent=feed is not None and feed.is_silent(now),
            failed=books.trouble.attempts > 0,
            upstream_failed=any(source.state in ("FAILED", "UPSTREAM_FAILED") for source in sources),
            # A policy with a recovery mode says itself which tables recover.
            recovering=books.recovering and rule is None,
            in_recovery=is_recovering(task),
        )
        return TableStatus(
            name=task.name,
            state=state,
            freshness_us=None if task.empty else task.freshness,
            trailing_edge_us=edge or None,
            staleness_bound_us=plan.staleness_bound_us,
            target_lag_us=plan.target_lag_us,
            period_us=task.period_us,
            backlog=task.intake.files(task.job),
            loaded_rows=books.rows,
            late_rows=books.rows_late,
            jobs=books.jobs,
            message=books.trouble.reason or None,
            staleness_max_us=books.staleness_max_us,
            lag_max_us=books.lag_max_us,
            running_on=task.job.track if task.state == RUNNING and task.job else None,
            expected=plan.expected,
            recovery_due_us=None if due is None else due.at,
            recovery_estimated=due is not None and due.estimated,
            came_us=came_us,
        )

    def resume(self, kernel: Kernel) -> None:
        """What the run before left undone has a known reason: that it ended."""
        for task in tables_of(kernel):
            behind_us = task.intake.trailing_edge(kernel.now) - task.freshness
            self.books[task.name].recovering = not task.empty and behind_us > task.period_us
            feed = self.warehouse.tables[task.name].feed
            if feed is not None and not task.empty:
                self.came(feed, self._started)

    def came(self, feed: str, at: int) -> None:
        """A feed brought something that has records, or should have."""
        self._came.setdefault(feed, max(at, self._started))

    def landed(self, landed: Landed) -> None:
        """A file came. After a silence, or while no runner ran, a backlog has a known reason."""
        feed = self.feeds[landed.feed]
        self.came(landed.feed, landed.arrival)
        if landed.waited or feed.is_dry(landed.arrival):
            for name in landed.tables:
                self.books[name].recovering = True
            self.asserted.suspend(landed.tables)
        feed.landed(landed.arrival, landed.file.timestamp)
        if feed.is_old:
            self.asserted.suspend(landed.tables)
        if not any(self.books[name].recovering for name in landed.tables):  # a backlog is old
            age = feed.tell_age()
            if age is not None:
                self.note(landed.arrival, age)

    def empty(self, feed: str, at: int) -> None:
        """A file without records came."""
        self.feeds[feed].empty(at)

    def _feed(self, table: str) -> FeedHealth | None:
        feed = self.warehouse.tables[table].feed
        return None if feed is None else self.feeds[feed]


def _last(instants: Iterable[int | None]) -> int | None:
    """When all had come; None where one has not."""
    last = 0
    for at in instants:
        if at is None:
            return None
        last = max(last, at)
    return last
