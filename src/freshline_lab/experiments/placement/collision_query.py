"""Paper 002's query (figure 2): collision warnings, on a vehicle's node and a neighbouring one."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from freshline.planning.placement.place import place
from freshline.planning.placement.plan import (
    Operator,
    PlacementNode,
    PlacementOutput,
    PlacementPlan,
    StreamSource,
)
from freshline_lab.runs.placement_run import StepSetting

MS: Final = 1_000
SENSOR_TUPLES: Final = 10
CENTRE_TUPLES: Final = 100
CHAIN: Final = ("O4", *(f"O{number}" for number in range(7, 22)))
DEADLINES_MS: Final = {"O1": 30, "O21": 300, "O6": 3_000}  # of outputs 1, 2 and 3
# The programme was solved for this many tuples from other vehicles.
PLANNED_FOR: Final = 15


def collision_query(tuples: int = PLANNED_FOR) -> PlacementPlan:
    """The query for that many tuples at once; an operator takes 1 ms for each, and O3 drops half."""
    passed = Fraction(tuples, 2)
    operators = [
        _operator("O1", "sensor", SENSOR_TUPLES, "node1"),
        _operator("O2", "v2v", tuples, "node1"),
        Operator("O3", ("O2",), ("O3",), Fraction(tuples, 1_000), None, Fraction(1, 2)),
        *(
            _operator(name, before, passed, "node2")
            for before, name in zip(("O3", *CHAIN), CHAIN, strict=False)
        ),
        _operator("O5", "centre", CENTRE_TUPLES, "node2"),
        _operator("O6", "O5", CENTRE_TUPLES, "node2"),
    ]
    return PlacementPlan(
        (PlacementNode("node1"), PlacementNode("node2")),
        (
            StreamSource("sensor", "node1", Fraction(SENSOR_TUPLES)),
            StreamSource("v2v", "node1", Fraction(tuples)),
            StreamSource("centre", "node2", Fraction(CENTRE_TUPLES)),
        ),
        tuple(operators),
        tuple(PlacementOutput(name, Fraction(deadline, 1_000)) for name, deadline in DEADLINES_MS.items()),
    )


def deadline_alloc() -> StepSetting:
    """The paper's placement and sub-deadlines: O3 on node 2."""
    plan = collision_query()
    found = place(plan)
    assert found.layout is not None, "the paper's query is in time"
    sub_deadlines_us = {name: round(until * 1_000_000) for name, until in found.layout.sub_deadline.items()}
    tasks = [task.operators for task in found.tasks]
    return StepSetting(found.layout.nodes, sub_deadlines_us, _call_us(plan), tasks)


def existing_alloc() -> StepSetting:
    """The placement by traffic and load: O3 on node 1.

    It has no sub-deadlines: each node's local output gets that of the paper's placement, 30 ms for (O2, O3)
    and 270 ms for O4 to O21, shared by cost among its operators.
    """
    plan = collision_query()
    found = place(plan, method="sqpr")
    assert found.layout is not None, "every node reaches every other"
    ours = deadline_alloc().sub_deadlines_us
    sub_deadlines_us = {name: ours[name] for name in ("O1", "O5", "O6")}
    sub_deadlines_us |= dict.fromkeys(("O2", "O3"), ours["O2"] // 2)
    sub_deadlines_us |= dict.fromkeys(CHAIN, (ours["O3"] + sum(ours[name] for name in CHAIN)) // len(CHAIN))
    tasks = [("O1",), ("O2", "O3"), CHAIN, ("O5", "O6")]
    return StepSetting(found.layout.nodes, sub_deadlines_us, _call_us(plan), tasks)


def _operator(name: str, stream: str, tuples: int | Fraction, node: str) -> Operator:
    return Operator(name, (stream,), (name,), Fraction(tuples) / 1_000, (node,))


def _call_us(plan: PlacementPlan) -> dict[str, int]:
    """The cost of an operator for one tuple."""
    return dict.fromkeys((operator.name for operator in plan.operators), MS)
