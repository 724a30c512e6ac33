"""How a running warehouse is, put together from the kernel, what was observed, and the notes."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.task import RUNNING
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.live.nodes.step_figures import StepFigures
from freshline.live.status.status import (
    ClassStatus,
    PoolStatus,
    QueryStatus,
    TableStatus,
    TrackStatus,
    WarehouseStatus,
)
from freshline.live.status.step_status import PlacementStatus
from freshline.live.tables.judge import FailureCounts
from freshline.live.tables.notes import RunNotes
from freshline.live.tables.observation import LiveObservation
from freshline.live.tables.recoveries import RecoveryDue, dues
from freshline.live.tables.warm_plans import WarmPlans
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.step_placement import StepPlacement


class StatusReporter:
    """Makes the status, a frozen record. The driver's thread alone asks for it."""

    def __init__(
        self,
        warehouse: Warehouse,
        plan: Plan,
        run_id: str,
        observation: LiveObservation,
        troubles: FailureCounts,
        notes: RunNotes,
        warmth: WarmPlans,
    ) -> None:
        self._warehouse = warehouse
        self._run_id = run_id
        self._observation = observation
        self._troubles = troubles
        self._notes = notes
        self._warmth = warmth
        self._node: str | None = None
        self._steps: StepFigures | None = None
        self._placement: PlacementStatus | None = None
        self.queries: Callable[[], tuple[QueryStatus, ...]] = tuple
        self.classes: Callable[[], tuple[ClassStatus, ...]] = tuple
        self.learn(plan)

    def of_node(self, node: str | None, book: StepFigures, placed: StepPlacement | None) -> None:
        """Whose run it is, in a warehouse with nodes, who knows of its steps, and where all are placed."""
        self._node, self._steps = node, book
        self._placement = None if placed is None else PlacementStatus.of(placed)

    def learn(self, plan: Plan) -> None:
        """Costs became known, and bounds with them."""
        self._plans = {table.name: table for table in plan.tables}
        self._pools = tuple(
            PoolStatus(pool.name, pool.policy, pool.behaves_as(plan.tables)) for pool in plan.pools
        )

    def status(self, now: int, kernel: Kernel) -> WarehouseStatus:
        tasks = {task.name: task for task in tables_of(kernel)}
        due = dues(kernel, now)
        rows: dict[str, TableStatus] = {}
        for name in self._warehouse.topological_order:
            rows[name] = self._table(tasks[name], now, rows, due.get(name))
        return WarehouseStatus(
            name=self._warehouse.name,
            run_id=self._run_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            at_us=now,
            started_us=self._notes.started,
            tables=tuple(rows[name] for name in self._warehouse.tables),
            tracks=_tracks(kernel),
            broken_assumptions=tuple(self._notes.lines),
            quarantined=self._notes.quarantined,
            recoveries=tuple(self._observation.recoveries.lines(kernel, now, due, self._plans)),
            pools=self._pools,
            starting=self._warmth.progress(),
            queries=self.queries(),
            node=self._node,
            steps=() if self._steps is None else self._steps.steps(kernel),
            outputs=() if self._steps is None else self._steps.outputs(),
            classes=self.classes(),
            placement=self._placement,
        )

    def _table(
        self, task: TableTask, now: int, above: Mapping[str, TableStatus], due: RecoveryDue | None
    ) -> TableStatus:
        name, plan = task.name, self._plans[task.name]
        seen, feed = self._observation.tables[name], self._observation.feed_of(name)
        sources = [above[source] for source in self._warehouse.tables[name].sources if source in above]
        failed = self._troubles.attempts(name) > 0
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
            message=self._troubles.reason(name),
            staleness_max_us=seen.staleness_max_us,
            lag_max_us=seen.lag_max_us,
            running_on=task.job.track if task.state == RUNNING and task.job else None,
            expected=plan.expected,
            recovery_due_us=None if due is None else due.at,
            recovery_estimated=due is not None and due.estimated,
            came_us=_last(source.came_us for source in sources) if feed is None else feed.first_came,
        )


def _tracks(kernel: Kernel) -> tuple[TrackStatus, ...]:
    return tuple(
        TrackStatus(track, pool.name, job.task.name if job else None, job.start if job else None)
        for pool in kernel.pools
        for track in range(pool.tracks_from, pool.tracks_from + pool.tracks)
        for job in [pool.running.get(track)]
    )


def _last(instants: Iterable[int | None]) -> int | None:
    """When all had come; None where one has not."""
    last = 0
    for at in instants:
        if at is None:
            return None
        last = max(last, at)
    return last
