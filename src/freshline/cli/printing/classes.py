"""Service classes in the plan of their pools: as JSON, and for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from freshline.base.duration import format_duration, seconds
from freshline.cli.printing.grid import listed
from freshline.cli.printing.kind import PrintedKind
from freshline.planning.plan.plan import PoolPlan
from freshline.simulation.simulate import SimulationResult


class PrintedClasses(PrintedKind):
    """The service classes. Their results in a simulated run are a section of their own."""

    def pool_record(self, pool: PoolPlan) -> dict[str, Any]:
        return {"classes": list(pool.classes), "part": seconds(pool.part_us)} if pool.classes else {}

    def pool_notes(self, pool: PoolPlan) -> Iterable[str]:
        """The classes, and how long they block updates."""
        if pool.classes:
            said = f"answers {listed(pool.classes)}, the most important first"
            if pool.tables:
                said += f"; a part of a request blocks an update for {format_duration(pool.part_us)} at most"
            yield said

    def result_record(self, result: SimulationResult) -> dict[str, Any]:
        """Requests are null unless some were simulated, which are a section then."""
        return {"requests": None} if result.plan.warehouse.classes else {}
