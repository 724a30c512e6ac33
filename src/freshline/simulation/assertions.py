"""When a simulated run asserts which bounds, and the worst staleness meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from freshline.definitions.language.policies import POLICIES
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.recovery.modes import recovery_rule
from freshline.kernel.steps.task import StepTask, steps_of
from freshline.kernel.tables.asserted_bounds import AssertedBounds
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.kernel.tables.update import Update
from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.outages import Outages


class Assertions:
    """Examines every job that ends, before the kernel takes its end.

    A bound is asserted from the start. An outage of a feed upstream, a failure or a crash suspends it until
    the table is fresh again. If a periodically released table fails, its pool has more jobs than the analysis
    counts: no bound of the pool is asserted before the next start. Bounds of tables that read steps assume
    steps in time. A crash or an outage of a feed of steps suspends all steps, for they delay each other on
    their nodes; they count again once none of them has work.
    """

    def __init__(self, plan: Plan, outages: Outages) -> None:
        warehouse = plan.warehouse
        stored = warehouse.stored
        sources = {name: stored[name].sources for name in warehouse.stored_order}
        self._asserted = AssertedBounds(sources, from_start=True)
        self._bounds_us = {
            table.name: None if table.expected else table.staleness_bound_us for table in plan.tables
        }
        self._feeds = {name: table.feed for name, table in stored.items()}
        self._steps = tuple(warehouse.steps)
        self._step_tasks: list[StepTask] = []
        self._periodic = warehouse.tables.keys() - warehouse.released_by_files
        self._outages = outages
        # The latest first: past outages are popped from the end.
        self._beginning = sorted(
            ((start, feed) for feed, times in outages.items() for start, _ in times), reverse=True
        )
        self._tables: list[TableTask] = []
        self._overloaded: set[str] = set()  # pools
        self._adapts = any(POLICIES[pool.policy].adaptive for pool in plan.pools)
        self._bounded = frozenset(name for name, bound_us in self._bounds_us.items() if bound_us is not None)
        self._max_us = dict.fromkeys(self._bounds_us, -1)
        # Called with each staleness that is compared with its bound: the table, the instant, the staleness.
        self.compared: Callable[[str, int, int], None] | None = None

    def begins(self, kernel: Kernel) -> None:
        """The kernel runs from now on."""
        self._tables = tables_of(kernel)
        self._step_tasks = steps_of(kernel)
        self._overloaded.clear()

    def max_us(self, table: str) -> int | None:
        """The worst staleness of a table while its bound was asserted; None if it never was."""
        staleness_us = self._max_us[table]
        return None if staleness_us < 0 or table not in self._bounded else staleness_us

    def finished(self, now: int, job: Update, freshness: int) -> None:
        """A job ends now, and its table gets that freshness."""
        if self._beginning and self._beginning[-1][0] <= now:
            self._notice_outages(now)
        if self._step_tasks and self._steps[0] not in self._asserted:
            self._look_at_steps(now)
        task = job.task
        name = task.name
        if name in self._asserted.since:  # most are, most of the time
            rule = recovery_rule(task) if self._adapts else None
            if rule is None or not rule.excused:
                staleness_us = now - job.loaded_from
                if staleness_us > self._max_us[name]:
                    self._max_us[name] = staleness_us
                if self.compared is not None:
                    self.compared(name, now, staleness_us)
                return
            self._asserted.suspend([name])
        delivers = task.pool.name not in self._overloaded and self._delivers(name, now)
        self._asserted.ended(job, freshness, now, self._bounds_us[name], delivers)

    def failed(self, now: int, job: Update) -> None:
        """A job ends now without effect."""
        self._notice_outages(now)
        task = job.task
        suspended = {task.name}
        if task.name in self._periodic:
            self._overloaded.add(task.pool.name)
            suspended.update(other.name for other in self._tables if other.pool is task.pool)
        self._suspend(now, suspended)

    def crashed(self, now: int) -> None:
        """The runner has crashed."""
        self._notice_outages(now)
        self._suspend(now, self._feeds)

    def node_crashed(self, now: int, tables: Collection[str]) -> None:
        """The node of these tables and steps has crashed."""
        self._notice_outages(now)
        self._suspend(now, {*tables, *self._steps})

    def node_began(self, kernel: Kernel) -> None:
        """The node runs again, with new tasks."""
        self._tables = tables_of(kernel)
        self._step_tasks = steps_of(kernel)

    def over(self, end: int) -> None:
        """The run is over."""
        self._notice_outages(end)
        self._suspend(end, ())

    def promises_count(self, task: TableTask) -> bool:
        """Whether the jobs of the task's pool are only those that bounds and promises count."""
        return task.pool.name not in self._overloaded

    def _notice_outages(self, now: int) -> None:
        """No job has ended since they began, so all tables still are as they were then."""
        while self._beginning and self._beginning[-1][0] <= now:
            start, feed = self._beginning.pop()
            suspended = [name for name, own in self._feeds.items() if own == feed]
            if not set(self._steps).isdisjoint(suspended):
                suspended += self._steps
            self._suspend(start, suspended)

    def _look_at_steps(self, now: int) -> None:
        """Steps count again once none has work, and all their feeds deliver: it is as at the start."""
        if not any(step.waiting or step.job or step.files for step in self._step_tasks) and all(
            self._delivers(name, now) for name in self._steps
        ):
            self._asserted.since |= dict.fromkeys(self._steps, now)

    def _delivers(self, table: str, now: int) -> bool:
        feed = self._feeds[table]
        if feed is None or feed not in self._outages:
            return True
        return not any(start <= now < end for start, end in self._outages[feed])

    def _suspend(self, now: int, tables: Iterable[str]) -> None:
        for task in self._tables:
            self._compare(task, now)
        self._asserted.suspend(tables)

    def _compare(self, task: TableTask, now: int) -> None:
        name, staleness_us = task.name, now - task.freshness
        if name in self._asserted and not _is_excused(task):
            self._max_us[name] = max(self._max_us[name], staleness_us)
            if self.compared is not None:
                self.compared(name, now, staleness_us)


def _is_excused(task: TableTask) -> bool:
    """Whether the table's release rule suspends its bound."""
    rule = recovery_rule(task)
    return rule is not None and rule.excused
