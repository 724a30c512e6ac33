"""What a live run knows of itself: judge, observation, notes and reporting, and how they hang together."""

from __future__ import annotations

from collections.abc import Callable

from freshline.base.clock import Clock, clock
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.live.run.status_reporter import StatusReporter
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.judge import FailureCounts, LoadFailures, UpdateJudge
from freshline.live.tables.notes import RunNotes
from freshline.live.tables.observation import LiveObservation
from freshline.live.tables.warm_plans import WarmPlans
from freshline.planning.plan.plan import Plan


class Keeper:
    """Makes these parts, and has them look twice a second. Whoever needs one of them is given that one.

    `notes` and `troubles` may be asked by any thread; everything else here is the driver's thread's alone.
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
    ) -> None:
        warmth = warmth or WarmPlans()
        self.notes = RunNotes(started, now)
        self.troubles = FailureCounts()
        self.observation = LiveObservation(warehouse, plan, started, self.notes, warmth)
        self.failures = LoadFailures(self.troubles, self.notes, stop)
        self.judge = UpdateJudge(self.observation, self.failures, self.notes)
        self.reporting = StatusReporter(
            warehouse, plan, run_id, self.observation, self.troubles, self.notes, warmth
        )

    def learn(self, plan: Plan) -> None:
        """Costs became known, and bounds with them."""
        self.observation.learn(plan)
        self.reporting.learn(plan)

    def look(self, now: int, kernel: Kernel) -> WarehouseStatus:
        """How everything is now."""
        self.observation.look(now, kernel)
        self.notes.look(kernel)
        return self.reporting.status(now, kernel)
