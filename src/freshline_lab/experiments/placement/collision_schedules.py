"""Paper 002's worked schedules (figures 3 and 4, section 4.1), run by the kernel."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from freshline.planning.placement.plan import Operator, PlacementPlan
from freshline_lab.experiments.placement.collision_query import (
    CHAIN,
    MS,
    collision_query,
    deadline_alloc,
    existing_alloc,
)
from freshline_lab.runs.placement_run import Burst, StepSetting, run_steps, step_kernel

# p1, ten tuples of the sensor, comes now. p2 has waited for 100 ms at O2, and p3 for 200 ms. An extra
# operator on each node stands for its earlier work.
NOW: Final = 300 * MS
_BURSTS: Final = [
    Burst(NOW - 250 * MS, "earlier1", 1),
    Burst(NOW - 250 * MS, "earlier2", 1),
    *(Burst(NOW - 200 * MS, "centre", number) for number in range(1, 101)),
    Burst(NOW - 100 * MS, "v2v", 1),
    Burst(NOW, "sensor", 1),
]


def schedules() -> dict[str, Any]:
    """By figure: the latencies of p1 and p2, in milliseconds."""
    existing, ours = existing_alloc(), deadline_alloc()
    # p1 goes first if it is due before p2's first operator.
    urgent = existing._replace(sub_deadlines_us={**existing.sub_deadlines_us, "O1": 1})
    return {
        "figure 3, p2 first": latencies(existing),
        "figure 3, p1 first": latencies(
            urgent._replace(sub_deadlines_us={**urgent.sub_deadlines_us, "O2": 200 * MS})
        ),
        "figure 4": latencies(ours),
        "figure 4, first in, first out": latencies(ours._replace(policy="fifo")),
    }


def latencies(setting: StepSetting) -> dict[str, float]:
    """The ages of p1 and p2 when they come out."""
    plan = _with_earlier(collision_query(20))
    setting = setting._replace(
        nodes={**setting.nodes, "earlier1": "node1", "earlier2": "node2"},
        sub_deadlines_us={**setting.sub_deadlines_us, "earlier1": MS, "earlier2": MS},
        costs_us={**setting.costs_us, "earlier1": 250 * MS, "earlier2": 250 * MS},
        tasks=[*setting.tasks, ("earlier1",), ("earlier2",)],
    )
    done = run_steps(step_kernel(plan, setting), _BURSTS, _cost_us)
    finished = {each.operator: each.finish for each in done}
    return {
        "p1": (finished["O1"] - NOW) / MS,
        "p2": (finished[CHAIN[-1]] - (NOW - 100 * MS)) / MS,
    }


def _cost_us(operator: str, number: int) -> int:
    """The cost of a whole burst: p1 ten tuples, p2 twenty, of which ten pass O3; p3 tuple by tuple."""
    if operator.startswith("earlier"):
        return 250 * MS
    if operator in ("O5", "O6"):
        return MS
    return 20 * MS if operator in ("O2", "O3") else 10 * MS


def _with_earlier(plan: PlacementPlan) -> PlacementPlan:
    earlier = [
        Operator(f"earlier{k}", (f"earlier{k}",), (f"done{k}",), Fraction(1, 4), (f"node{k}",))
        for k in (1, 2)
    ]
    return replace(plan, operators=(*plan.operators, *earlier))
