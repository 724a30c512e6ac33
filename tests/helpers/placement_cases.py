"""Plans that several tests place."""

from fractions import Fraction
from pathlib import Path

from freshline.planning.placement.plan import (
    Operator,
    PlacementNode,
    PlacementOutput,
    PlacementPlan,
    StreamSource,
)
from freshline.planning.placement.plan_file import parse_plan

COLLISION_FILE = Path(__file__).parents[2] / "examples" / "place" / "collision.json"


def collision() -> PlacementPlan:
    """Figure 2 at fifteen tuples from other vehicles."""
    return parse_plan(COLLISION_FILE.read_text(encoding="utf-8"))


def operator(
    name: str,
    inputs: str,
    cost: float,
    nodes: str | None = None,
    outputs: str | None = None,
    selectivity: float = 1,
) -> Operator:
    return Operator(
        name,
        tuple(inputs.split()),
        tuple((outputs or name).split()),
        Fraction(str(cost)),
        None if nodes is None else tuple(nodes.split()),
        Fraction(str(selectivity)),
    )


def plan(
    *operators: Operator,
    outputs: dict[str, float],
    nodes: str = "a b",
    sources: dict[str, str] | None = None,
    links: str | None = None,
    sinks: dict[str, str] | None = None,
    blocking: float = 0,
) -> PlacementPlan:
    """`links` as in "a>b b>c"; `sources` by stream its nodes, `s` at the first node where none are given."""
    names = nodes.split()
    return PlacementPlan(
        tuple(PlacementNode(name, Fraction(1), Fraction(str(blocking))) for name in names),
        tuple(
            StreamSource(stream, node)
            for stream, at in (sources or {"s": names[0]}).items()
            for node in at.split()
        ),
        operators,
        tuple(
            PlacementOutput(stream, Fraction(str(deadline)), (sinks or {}).get(stream))
            for stream, deadline in outputs.items()
        ),
        None
        if links is None
        else tuple((one, other) for one, other in (each.split(">") for each in links.split())),
    )
