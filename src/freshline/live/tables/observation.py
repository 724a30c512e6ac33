"""Observes the tables and feeds of a live run: staleness, lag, rows and asserted bounds."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.recovery.modes import is_recovering, recovery_rule
from freshline.kernel.tables.asserted_bounds import AssertedBounds
from freshline.kernel.tables.state import TableState, exceeds, table_state
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.kernel.tables.update import Update
from freshline.live.loop.messages import FileFound
from freshline.live.loop.run_notes import RunNotes
from freshline.live.tables.burst_watch import BurstWatch
from freshline.live.tables.feed_health import FeedHealth
from freshline.live.tables.file_to_load import FileToLoad
from freshline.live.tables.late_rows import LateRows
from freshline.live.tables.recoveries import Recoveries
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.planning.plan.plan import Plan
from freshline.spark.loading.load_result import LoadResult

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ObservedTable:
    """The observations of one table during a run."""

    late: LateRows
    rows_shed: int = 0
    discarded: int = 0  # files
    jobs: int = 0
    staleness_max_us: int | None = None
    lag_max_us: int | None = None
    asserted_max_us: int | None = None  # the worst staleness while its bound was asserted
    recovering: bool = False
    samples: list[tuple[int, int]] = field(default_factory=list)  # (instant, staleness)

    @property
    def rows(self) -> int:
        return self.late.rows

    @property
    def rows_late(self) -> int:
        return self.late.late


class LiveObservation:
    """Receives all events before the kernel and looks twice a second. Only the driver's thread uses it."""

    def __init__(
        self, warehouse: Warehouse, plan: Plan, started: int, notes: RunNotes, warmth: WarmPlans
    ) -> None:
        self._warehouse = warehouse
        self._started = started
        self._notes = notes
        self._warmth = warmth
        self.tables = {
            name: ObservedTable(LateRows(name, None if table.feed is None else warehouse.feeds[table.feed]))
            for name, table in warehouse.tables.items()
        }
        self.feeds = {name: FeedHealth(feed, started) for name, feed in warehouse.feeds.items()}
        sources = {name: warehouse.tables[name].sources for name in warehouse.topological_order}
        self._bursts = {
            step.feed: BurstWatch(warehouse.feeds[step.feed])
            for step in warehouse.steps.values()
            if step.feed is not None
        }
        self.asserted = AssertedBounds(sources)
        self.recoveries = Recoveries(started)
        self.keep_samples = False
        # (table, from, to, rows)
        self.on_rows: Callable[[str, int, int, int], None] | None = None
        self.learn(plan)

    def learn(self, plan: Plan) -> None:
        """Uses a plan with newly known costs and bounds."""
        self._plans = {table.name: table for table in plan.tables}

    def resume(self, kernel: Kernel) -> None:
        """Puts the backlog of the run before down to its end."""
        for task in tables_of(kernel):
            behind_us = task.intake.trailing_edge(kernel.now) - task.freshness
            self.tables[task.name].recovering = not task.empty and behind_us > task.period_us
            feed = self.feed_of(task.name)
            if feed is not None and not task.empty:
                feed.came(self._started)

    def feed_of(self, table: str) -> FeedHealth | None:
        feed = self._warehouse.tables[table].feed
        return None if feed is None else self.feeds[feed]

    @property
    def asserted_max_us(self) -> dict[str, int | None]:
        """By table, the worst staleness while its bound was asserted."""
        return {name: seen.asserted_max_us for name, seen in self.tables.items()}

    # -- what comes --------------------------------------------------------------------------------

    def landed(self, landed: FileFound) -> None:
        """Records a file. A backlog after a silence or a time without a runner has a known reason."""
        feed = self.feeds[landed.feed]
        feed.came(landed.arrival)
        self._watch_burst(landed)
        tables = [name for name in landed.tables if name in self.tables]  # the others are steps
        if landed.waited or feed.is_dry(landed.arrival):
            for name in tables:
                self.tables[name].recovering = True
            self.asserted.suspend(tables)
        feed.landed(landed.arrival, landed.file.timestamp)
        if feed.is_old:
            self.asserted.suspend(tables)
        if not any(self.tables[name].recovering for name in tables):  # a backlog is old
            age = feed.tell_age()
            if age is not None:
                self._notes.note(landed.arrival, age)

    def _watch_burst(self, landed: FileFound) -> None:
        """Notes what a file shows of its feed that outputs do not assume."""
        watch, file = self._bursts.get(landed.feed), landed.file
        if watch is not None and isinstance(file, FileToLoad):
            for text in watch.tell(landed.arrival, file.facts, landed.waited):
                self._notes.note(landed.arrival, text)

    def emptied(self, feed: str, at: int) -> None:
        """Records a file without records."""
        self.feeds[feed].empty(at)

    def came(self, feed: str, at: int) -> None:
        """Records the arrival of a file with records, or of one that should have some."""
        self.feeds[feed].came(at)

    def rows_came(self, table: str, after: int, to: int, rows: int) -> None:
        """A table or step, here or on another node, has got that many rows with timestamps in (after, to]."""
        if self.on_rows is not None:
            self.on_rows(table, after, to, rows)

    # -- how updates end ---------------------------------------------------------------------------

    def ending(self, task: TableTask, now: int) -> None:
        """Records the end of an update, successful or not; its table may have recovered."""
        self.recoveries.notice(task, now, self._plans[task.name].expected)

    def failed(self, table: str) -> None:
        self.asserted.suspend([table])

    def succeeded(self, task: TableTask, now: int, after_failures: bool) -> None:
        """Records staleness and lag, which are at their worst. A backlog of failures has a known reason."""
        self._observe(task, now)
        if after_failures:
            self.tables[task.name].recovering = True

    def committed(self, job: Update, update: LoadResult, now: int, ended_at: int) -> None:
        """Records loaded rows and decides whether the table's bound counts from here on."""
        name = job.task.name
        seen, feed = self.tables[name], self.feed_of(name)
        warning = seen.late.add(update.rows, update.rows_late, job.loaded_from, job.files)
        if warning is not None:
            self._notes.note(now, warning)
            _logger.warning("%s", warning)
        seen.rows_shed += update.rows_shed
        seen.discarded += update.discarded
        seen.jobs += 1
        if self.keep_samples:
            seen.samples.append((now, now - update.freshness))
        delivers = feed is None or not (feed.is_dry(ended_at) or feed.is_old)
        bound_us = self._plans[name].staleness_bound_us
        warm = self._warmth.was_warm(name, job.start)
        self.asserted.ended(job, update.freshness, ended_at, bound_us, delivers, warm)
        if update.computed:
            self._warmth.warmed(name, ended_at)

    # -- looking -----------------------------------------------------------------------------------

    def look(self, now: int, kernel: Kernel) -> None:
        for name, table in self._warehouse.tables.items():
            if table.feed is not None and self._warmth.is_awaited(name):
                self.feeds[table.feed].not_looked_for(now)
        self._note_silence(now)
        for task in tables_of(kernel):
            self._observe(task, now)
            self.recoveries.notice(task, now, self._plans[task.name].expected)

    def _note_silence(self, now: int) -> None:
        for feed in self.feeds.values():
            silence = feed.tell_silence(now)
            if silence is not None:
                self._notes.note(now, silence)
        dry = {name for name, feed in self.feeds.items() if feed.is_dry(now)}
        self.asserted.suspend(name for name, table in self._warehouse.tables.items() if table.feed in dry)

    def _observe(self, task: TableTask, now: int) -> None:
        """Records staleness and lag just before they change; nothing before the first load."""
        if task.empty:
            return
        seen = self.tables[task.name]
        staleness_us = now - task.freshness
        lag_us = max(0, task.intake.trailing_edge(now) - task.freshness)
        seen.staleness_max_us = max(seen.staleness_max_us or 0, staleness_us)
        seen.lag_max_us = max(seen.lag_max_us or 0, lag_us)
        if task.name in self.asserted:
            seen.asserted_max_us = max(seen.asserted_max_us or 0, staleness_us)
        if self.keep_samples:
            seen.samples.append((now, staleness_us))

    def state(self, task: TableTask, now: int, sources: Sequence[TableState], failed: bool) -> TableState:
        """The state of the table, given the states of its sources."""
        seen, feed = self.tables[task.name], self.feed_of(task.name)
        lag_us = None if task.empty else max(0, task.intake.trailing_edge(now) - task.freshness)
        if "RECOVERING" in sources:
            seen.recovering = True  # the backlog of its sources reaches it too
        elif lag_us is not None and lag_us <= task.period_us:
            seen.recovering = False
        rule, plan = recovery_rule(task), self._plans[task.name]
        misses_target = not task.empty and exceeds(now - task.freshness, plan.target_lag_us)
        return table_state(
            loaded=not task.empty,
            lag_us=lag_us,
            period_us=task.period_us,
            staleness_bound_us=rule.terms.threshold_us if rule else plan.staleness_bound_us,
            # The silence of a source is seen once the table is staler than its target.
            silent=feed.is_silent(now) if feed is not None else misses_target and "SILENT" in sources,
            failed=failed,
            upstream_failed="FAILED" in sources or "UPSTREAM_FAILED" in sources,
            # A policy with a recovery mode knows which tables recover.
            recovering=seen.recovering and rule is None,
            in_recovery=is_recovering(task),
            misses_target=misses_target,
        )
