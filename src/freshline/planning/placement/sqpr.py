"""Placement as in SQPR, by traffic and load instead of deadlines: the paper's baseline.

It minimises traffic/Σ rates + greatest load/Σ costs. A stream's traffic is its rate times its hops. Its rate
is the sum of its operator's input rates times the selectivity. Single moves give a start, HiGHS the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from freshline.planning.placement.links import members
from freshline.planning.placement.programme import Programme, topological
from freshline.planning.placement.search import is_legal, legal_start
from freshline.planning.placement.solver import Solver

_EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class _Flow:
    """A stream between units: its share of all rates, its producing unit or origin nodes, its readers."""

    share: float
    producer: int | None
    origins: tuple[int, ...]
    readers: tuple[int, ...]
    sink: int | None

    def hops(self, programme: Programme, nodes: Sequence[int]) -> int:
        origins = self.origins if self.producer is None else (nodes[self.producer],)
        goals = [nodes[unit] for unit in self.readers]
        if self.sink is not None:
            goals.append(self.sink)
        return len(programme.links.tree("", origins, goals))


def sqpr(programme: Programme, limit_s: float) -> list[int] | None:
    """Nodes by unit; None if links allow none. Ties go to the first node of the file, unit by unit."""
    flows = _flows(programme)
    nodes = legal_start(programme)
    if nodes is not None:
        _improve(programme, flows, nodes)
    nodes = _optimum(programme, flows, nodes, limit_s)
    if nodes is not None:
        _improve(programme, flows, nodes)
    return nodes


def _flows(programme: Programme) -> list[_Flow]:
    plan = programme.plan
    number_of = {node.name: number for number, node in enumerate(plan.nodes)}
    unit_of = {place: number for number, unit in enumerate(programme.units) for place in unit.operators}
    rates = {source.stream: source.rate for source in plan.sources}
    made_by: dict[str, int] = {}
    for place in topological(plan):
        operator = plan.operators[place]
        rate = sum(rates[stream] for stream in operator.inputs) * operator.selectivity
        for stream in operator.outputs:
            rates[stream], made_by[stream] = rate, unit_of[place]
    whole = float(sum(rates.values())) or 1.0
    origins: dict[str, list[int]] = defaultdict(list)
    for source in plan.sources:
        origins[source.stream].append(number_of[source.node])
    readers: dict[str, list[int]] = defaultdict(list)
    for place, operator in enumerate(plan.operators):
        for stream in operator.inputs:
            if unit_of[place] in programme.rank and unit_of[place] != made_by.get(stream):
                readers[stream].append(unit_of[place])
    sinks = {output.stream: number_of[output.node] for output in plan.outputs if output.node is not None}
    return [
        _Flow(
            float(rate) / whole,
            made_by.get(stream),
            tuple(origins[stream]),
            tuple(dict.fromkeys(readers[stream])),
            sinks.get(stream),
        )
        for stream, rate in rates.items()
        if readers[stream] or stream in sinks
    ]


def _improve(programme: Programme, flows: Sequence[_Flow], nodes: list[int]) -> None:
    """Takes moves that lower the score, or keep it and go to an earlier node of the file."""
    around: dict[int, list[_Flow]] = defaultdict(list)
    for flow in flows:
        for unit in {flow.producer, *flow.readers} - {None}:
            assert unit is not None
            around[unit].append(flow)
    loads = [0.0] * len(programme.plan.nodes)
    for unit in programme.order:
        loads[nodes[unit]] += _share(programme, unit, nodes[unit])

    def score(unit: int, node: int) -> float:
        """The score of all that depends on the unit's node."""
        before, nodes[unit] = nodes[unit], node
        traffic = sum(flow.share * flow.hops(programme, nodes) for flow in around[unit])
        after = list(loads)
        after[before] -= _share(programme, unit, before)
        after[node] += _share(programme, unit, node)
        nodes[unit] = before
        return traffic + max(after)

    changed = True
    while changed:
        changed = False
        for unit in sorted(programme.order):
            known = score(unit, nodes[unit])
            for node in members(programme.domains[unit]):
                if node == nodes[unit] or not is_legal(programme, nodes, {unit: node}):
                    continue
                limit = known + _EPSILON if node < nodes[unit] else known - _EPSILON
                if (found := score(unit, node)) < limit:
                    loads[nodes[unit]] -= _share(programme, unit, nodes[unit])
                    loads[node] += _share(programme, unit, node)
                    nodes[unit], known, changed = node, found, True


def _share(programme: Programme, unit: int, node: int) -> float:
    """What a unit adds to a node's load, as a share of all costs."""
    return programme.cost[unit] / programme.speed[node] / programme.work


def _optimum(
    programme: Programme, flows: Sequence[_Flow], start: list[int] | None, limit_s: float
) -> list[int] | None:
    model = Solver()
    z = {
        (unit, node): model.column(0.0, 1.0, whole=True)
        for unit, domain in enumerate(programme.domains)
        for node in members(domain)
    }
    for unit, domain in enumerate(programme.domains):
        model.row(1.0, 1.0, *((z[unit, node], 1.0) for node in members(domain)))
    greatest = model.column(0.0, inf, 1.0)
    for node in range(len(programme.plan.nodes)):
        here = [unit for unit in programme.order if (unit, node) in z]
        work = [(z[unit, node], -_share(programme, unit, node)) for unit in here]
        model.row(0.0, inf, (greatest, 1.0), *work)
    for flow in flows:
        _route(model, programme, flow, z)
    known = None
    if start is not None:
        known = {column: float(start[unit] == node) for (unit, node), column in z.items()}
    values = model.solve(known, limit_s).values
    if values is None:
        return start
    nodes = [0] * len(programme.units)
    for (unit, node), column in z.items():
        if values[column] > 0.5:
            nodes[unit] = node
    return nodes


def _route(model: Solver, programme: Programme, flow: _Flow, z: dict[tuple[int, int], int]) -> None:
    """y, x and l of (7)–(9) and (11) for one stream; x costs its rate. A level l rises with each hop."""
    following = programme.links.next
    count = len(following)
    here = [model.column(0.0, 1.0) for _ in range(count)]
    ways: dict[tuple[int, int], int] = {}
    # If every node is one hop away, no node relays, and it does not matter from where a node gets it.
    relays = any(len(each) < count - 1 for each in following)
    for node in range(count):
        into = [one for one in range(count) if node in following[one]] if relays else [node]
        for one in into:
            ways[one, node] = model.column(0.0, 1.0, flow.share, whole=relays)
        got = [(ways[one, node], 1.0) for one in into]
        if flow.producer is not None and (flow.producer, node) in z:
            got.append((z[flow.producer, node], 1.0))
        model.row(-float(node in flow.origins), inf, (here[node], -1.0), *got)
        for reader in flow.readers:
            if (reader, node) in z:
                model.row(0.0, inf, (here[node], 1.0), (z[reader, node], -1.0))
    if flow.sink is not None:
        model.row(1.0, inf, (here[flow.sink], 1.0))
    if relays:
        level = [model.column(0.0, count) for _ in range(count)]
        for (one, other), column in ways.items():
            model.row(0.0, inf, (here[one], 1.0), (column, -1.0))
            model.row(-float(count), inf, (level[other], 1.0), (level[one], -1.0), (column, -count - 1.0))
