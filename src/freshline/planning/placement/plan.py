"""Operators, nodes that may run them, and outputs with end-to-end deadlines, in seconds (paper 002)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class PlacementNode:
    """One processor. Other work may hold it for `blocking` before an urgent operator starts."""

    name: str
    speed: Fraction = Fraction(1)
    blocking: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class StreamSource:
    """The origin of a stream; a stream at several nodes has an entry for each."""

    stream: str
    node: str
    rate: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Operator:
    """Computes its output streams once all its inputs are there; `nodes` None: any node may run it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    cost: Fraction  # on a node of speed 1
    nodes: tuple[str, ...] | None = None
    selectivity: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class PlacementOutput:
    """A stream that must be out within its deadline after its latest input tuple; at `node`, or anywhere."""

    stream: str
    deadline: Fraction
    node: str | None = None


@dataclass(frozen=True, slots=True)
class PlacementPlan:
    """What is to be placed. `links` None: every node reaches every other.

    Names are known and unique, the operators have no cycle, costs and deadlines are above zero, and an
    operator makes every output: `plan_file` checks this for files, other callers must ensure it.
    """

    nodes: tuple[PlacementNode, ...]
    sources: tuple[StreamSource, ...]
    operators: tuple[Operator, ...]
    outputs: tuple[PlacementOutput, ...]
    links: tuple[tuple[str, str], ...] | None = None
