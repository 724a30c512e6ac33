"""How one kind of work is printed: its part of a plan, and of the results of a simulated run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console

from freshline.planning.plan.plan import Plan, PoolPlan
from freshline.simulation.simulate import SimulationResult


class PrintedKind:
    """One kind; `printing.kinds` lists all. A kind overrides what it has to say."""

    def plan_record(self, plan: Plan) -> Mapping[str, Any]:
        """Its keys in the JSON of a plan."""
        return {}

    def show_plan(self, screen: Console, plan: Plan, all_rows: bool) -> None:
        """Prints its part of a plan."""

    def pool_record(self, pool: PoolPlan) -> Mapping[str, Any]:
        """Its keys in the JSON of a pool."""
        return {}

    def pool_notes(self, pool: PoolPlan) -> Iterable[str]:
        """What there is to say of it in a pool."""
        return ()

    def pool_verdict(self, plan: Plan, pool: PoolPlan) -> str | None:
        """The verdict on a pool of this kind alone, as marked-up text."""
        return None

    def held(self, plan: Plan) -> str | None:
        """What holds of it in a plan that holds, as a clause."""
        return None

    def failing(self, plan: Plan) -> str | None:
        """What does not hold, as marked-up text."""
        return None

    def assumed(self, plan: Plan) -> Iterable[str]:
        """What its verdicts assume beside what all verdicts do."""
        return ()

    def result_record(self, result: SimulationResult) -> Mapping[str, Any]:
        """Its keys in the JSON of a simulated run."""
        return {}

    def show_result(self, screen: Console, result: SimulationResult, all_rows: bool) -> None:
        """Prints its results of a simulated run."""

    def missed(self, result: SimulationResult) -> str | None:
        """What it did not keep in a simulated run, as marked-up text."""
        return None
