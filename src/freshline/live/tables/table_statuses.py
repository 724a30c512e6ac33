"""Makes the statuses of tables from the kernel, the observations and the failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import RUNNING
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.live.tables.judge import FailureCounts
from freshline.live.tables.observation import LiveObservation
from freshline.live.tables.recoveries import RecoveryDue, dues
from freshline.live.tables.table_status import TableStatus
from freshline.planning.plan.plan import Plan


class TableStatuses:
    """Makes the rows of the status. Only the driver's thread uses it."""

    def __init__(
        self, warehouse: Warehouse, plan: Plan, observation: LiveObservation, failures: FailureCounts
    ) -> None:
        self._warehouse = warehouse
        self._observation = observation
        self._failures = failures
        self.learn(plan)

    def learn(self, plan: Plan) -> None:
        """Uses a plan with newly known costs and bounds."""
        self._plans = {table.name: table for table in plan.tables}

    def rows(self, now: int, kernel: Kernel) -> tuple[TableStatus, ...]:
        """The tables in the order of definition."""
        tasks = {task.name: task for task in tables_of(kernel)}
        due = dues(kernel, now)
        rows: dict[str, TableStatus] = {}
        for name in self._warehouse.topological_order:
            rows[name] = self._row(tasks[name], now, rows, due.get(name))
        return tuple(rows[name] for name in self._warehouse.tables)

    def recoveries(self, now: int, kernel: Kernel) -> tuple[str, ...]:
        """Sentences about the present recoveries and the latest ended ones."""
        return tuple(self._observation.recoveries.lines(kernel, now, dues(kernel, now), self._plans))

    def _row(
        self, task: TableTask, now: int, above: Mapping[str, TableStatus], due: RecoveryDue | None
    ) -> TableStatus:
        name, plan = task.name, self._plans[task.name]
        seen, feed = self._observation.tables[name], self._observation.feed_of(name)
        sources = [above[source] for source in self._warehouse.tables[name].sources if source in above]
        failed = self._failures.attempts(name) > 0
        return TableStatus(
            name=name,
            state=self._observation.state(task, now, [source.state for source in sources], failed),
            freshness_us=None if task.empty else task.freshness,
            trailing_edge_us=task.intake.trailing_edge(now) or None,
            staleness_bound_us=plan.staleness_bound_us,
            target_lag_us=plan.target_lag_us,
            period_us=task.period_us,
            backlog=task.intake.files(task.job),
            loaded_rows=seen.rows,
            late_rows=seen.rows_late,
            shed_rows=seen.rows_shed,
            discarded_files=seen.discarded,
            jobs=seen.jobs,
            late_warning=seen.late.warning,
            message=self._failures.reason(name),
            staleness_max_us=seen.staleness_max_us,
            lag_max_us=seen.lag_max_us,
            running_on=task.job.track if task.state == RUNNING and task.job else None,
            expected=plan.expected,
            recovery_due_us=None if due is None else due.at,
            recovery_estimated=due is not None and due.estimated,
            came_us=_last(source.came_us for source in sources) if feed is None else feed.first_came,
        )


def _last(instants: Iterable[int | None]) -> int | None:
    """The last of these instants; None if one is missing."""
    last = 0
    for at in instants:
        if at is None:
            return None
        last = max(last, at)
    return last
