"""The result for a plan: nodes and sub-deadlines of operators, or the obstacles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

Status = Literal["optimal", "feasible", "infeasible", "unknown"]


class Route(NamedTuple):
    """A hop of a stream, from a node to the next."""

    stream: str
    from_node: str
    to_node: str


class SubDeadline(NamedTuple):
    """The time that an operator has after its inputs are there, for one output."""

    output: str
    operator: str
    seconds: float


@dataclass(frozen=True, slots=True)
class PlacedTask:
    """Operators of a node that run one after another for the same input (5.3)."""

    node: str
    operators: tuple[str, ...]
    cost: float  # on a node of speed 1
    sub_deadline: float


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """A node's work for one instance of each operator, and the further blocking that it tolerates.

    The slack is None if no output needs the node, or if the plan does not hold.
    """

    name: str
    load: float
    slack: float | None


@dataclass(frozen=True, slots=True)
class PlacementLayout:
    """A placement with its routes and sub-deadlines."""

    nodes: Mapping[str, str]  # by operator
    routes: tuple[Route, ...]
    sub_deadlines: tuple[SubDeadline, ...]

    @property
    def sub_deadline(self) -> dict[str, float]:
        """D_o by operator, the least over all outputs; operators that no output needs have none."""
        found: dict[str, float] = {}
        for _, operator, seconds in self.sub_deadlines:
            found[operator] = min(seconds, found.get(operator, seconds))
        return found


@dataclass(frozen=True, slots=True)
class Infeasible:
    """The outputs and nodes that are the obstacle, and the least factor on all deadlines that would help.

    `stretch` and `layout`, the plan with stretched deadlines, are None if no factor helps.
    """

    reason: str
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]
    stretch: float | None
    layout: PlacementLayout | None


@dataclass(frozen=True, slots=True)
class Placement:
    """The result for a plan. Figures and layout are None if none was found."""

    status: Status
    objective: float | None
    bound: float | None
    layout: PlacementLayout | None
    tasks: tuple[PlacedTask, ...] = ()
    nodes: tuple[NodeLoad, ...] = ()
    infeasible: Infeasible | None = None

    @property
    def holds(self) -> bool:
        return self.status in ("optimal", "feasible")

    @property
    def gap(self) -> float | None:
        return None if self.objective is None or self.bound is None else gap(self.objective, self.bound)


def gap(objective: float, bound: float) -> float:
    """How far the objective may be above the least one, as a share of it."""
    return 0.0 if objective <= 1e-6 else max(0.0, (objective - bound) / objective)
