"""The records of a live run: notes, failures, observations of tables and the status."""

from __future__ import annotations

from collections.abc import Callable

from freshline.base.clock import Clock, clock
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.run_notes import RunNotes
from freshline.live.status.status import WarehouseStatus
from freshline.live.status.status_reporter import RunIdentity, StatusReporter
from freshline.live.tables.judge import FailureCounts, LoadFailures, UpdateJudge
from freshline.live.tables.observation import LiveObservation
from freshline.live.tables.table_status import TABLES
from freshline.live.tables.table_statuses import TableStatuses
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.planning.plan.plan import Plan


class RunRecords:
    """Makes these records and updates them twice a second.

    Any thread may use `notes` and `troubles`; everything else belongs to the driver's thread.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        plan: Plan,
        run_id: str,
        started: int,
        stop: Callable[[str], None],
        now: Clock = clock,
        warmth: WarmPlans | None = None,
        node: str | None = None,
    ) -> None:
        warmth = warmth or WarmPlans()
        self.notes = RunNotes(started, now)
        self.troubles = FailureCounts()
        self.observation = LiveObservation(warehouse, plan, started, self.notes, warmth)
        self.failures = LoadFailures(self.troubles, self.notes, stop)
        self.judge = UpdateJudge(self.observation, self.failures, self.notes)
        self._statuses = TableStatuses(warehouse, plan, self.observation, self.troubles)
        run = RunIdentity(warehouse.name, run_id, node)
        self.reporter = StatusReporter(run, plan, self.notes, warmth.progress, self._statuses.recoveries)
        self.reporter.sources.append(lambda now, kernel: {TABLES.name: self._statuses.rows(now, kernel)})

    def learn(self, plan: Plan) -> None:
        """Uses a plan with newly known costs and bounds."""
        self.observation.learn(plan)
        self._statuses.learn(plan)
        self.reporter.learn(plan)

    def look(self, now: int, kernel: Kernel) -> WarehouseStatus:
        """Updates the records; returns the present status."""
        self.observation.look(now, kernel)
        self.notes.look(kernel)
        return self.reporter.status(now, kernel)
