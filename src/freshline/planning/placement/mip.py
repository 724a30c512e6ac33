"""The programme as a mixed-integer one, for what a good start leaves open; HiGHS solves it.

A binary z says that a unit is on a node; it exists only for units with a choice. Along the order of (6) each
node has its work up to each unit, P; a unit's sub-deadline D is at least P of its node. x, y and l of the
paper are not needed: links allow what is within reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from freshline.planning.placement.bounds import Bounds
from freshline.planning.placement.links import members
from freshline.planning.placement.programme import Programme
from freshline.planning.placement.solver import Solver
from freshline.planning.placement.sub_deadlines import SubDeadlineRule


@dataclass(frozen=True, slots=True)
class SolvedModel:
    """The nodes by unit, if found; a lower bound; the solver's time."""

    nodes: list[int] | None
    bound: float  # inf if there is provably no placement
    seconds: float


class Model(Solver):
    """Units on nodes, the work of nodes along the order of (6), and the least sub-deadlines."""

    def __init__(self, programme: Programme, bounds: Bounds) -> None:
        super().__init__()
        self.programme = programme
        self.bounds = bounds
        # Times are in mean costs, as a solver's tolerances are absolute.
        self.scale = sum(programme.cost) / len(programme.cost)
        self.z: dict[tuple[int, int], int] = {}
        self._place_units()
        self.d: dict[int, int] = {
            unit: self.column(bounds.least[unit] / self.scale, bounds.most[unit] / self.scale)
            for unit in programme.order
        }
        for node in range(len(programme.plan.nodes)):
            self._load_node(node)

    def _place_units(self) -> None:
        programme = self.programme
        for unit, domain in enumerate(programme.domains):
            if domain.bit_count() > 1:
                columns = []
                for node in members(domain):
                    self.z[unit, node] = self.column(0.0, float(self._fits(unit, node)), whole=True)
                    columns.append((self.z[unit, node], 1.0))
                self.row(1.0, 1.0, *columns)
        if programme.links.connect_all:
            return
        for producer, consumer in programme.edges:
            self._link(producer, consumer)

    def _link(self, producer: int, consumer: int) -> None:
        """A consumer is on a node only if its producer can reach that node (7)–(9)."""
        programme = self.programme
        for node in members(programme.domains[consumer]):
            within = members(programme.domains[producer] & programme.links.reached_from[node])
            if len(within) == programme.domains[producer].bit_count():
                continue
            there = [(self.z[producer, each], 1.0) for each in within if (producer, each) in self.z]
            if (consumer, node) in self.z:
                self.row(0.0, inf, *there, (self.z[consumer, node], -1.0))
            else:
                self.row(1.0, inf, *there)

    def _fits(self, unit: int, node: int) -> bool:
        """Whether the unit fits there beside the units without a choice, within all bounds."""
        programme, bounds = self.programme, self.bounds
        if unit not in programme.rank:
            return True
        cost = programme.cost[unit] / programme.speed[node]
        done, rank = programme.blocking[node], programme.rank[unit]
        for pinned in programme.order:
            if programme.domains[pinned] != 1 << node:
                continue
            if programme.rank[pinned] > rank and bounds.least[pinned] + cost > bounds.most[pinned]:
                return False
            if programme.rank[pinned] < rank:
                done += programme.cost[pinned] / programme.speed[node]
        return done + cost <= bounds.most[unit]

    def _load_node(self, node: int) -> None:
        """P along the order of (6), and D ≥ P of the units here; M is the most of P less the least of D."""
        programme, bounds, scale = self.programme, self.bounds, self.scale
        blocking = programme.blocking[node] / scale
        before: int | None = None
        most = blocking
        for unit in programme.order:
            if not programme.domains[unit] >> node & 1:
                continue
            work = programme.cost[unit] / programme.speed[node] / scale
            z = self.z.get((unit, node))
            if z is not None and self.is_zero(z):
                continue
            most = max(most, bounds.most[unit] / scale)
            done = self.column(blocking, most)
            entries = [(done, 1.0)]
            if before is not None:
                entries.append((before, -1.0))
            start = blocking if before is None else 0.0
            if z is None:
                self.row(start + work, start + work, *entries)
                self.row(0.0, inf, (self.d[unit], 1.0), (done, -1.0))
            else:
                self.row(start, start, *entries, (z, -work))
                big = max(0.0, most - bounds.least[unit] / scale)
                self.row(-big, inf, (self.d[unit], 1.0), (done, -1.0), (z, -big))
            before = done

    def placed(self, start: Sequence[int] | None, limit_s: float, target: float | None = None) -> SolvedModel:
        """Nodes by unit and a bound, from a known placement."""
        known = None
        if start is not None:
            known = {column: float(start[unit] == node) for (unit, node), column in self.z.items()}
        found = self.solve(known, limit_s, target)
        if found.values is None:
            return SolvedModel(None, found.bound, found.seconds)
        nodes = [members(domain)[0] for domain in self.programme.domains]
        for (unit, node), column in self.z.items():
            if found.values[column] > 0.5:
                nodes[unit] = node
        return SolvedModel(nodes, found.bound, found.seconds)


def least_objective(
    programme: Programme, rule: SubDeadlineRule, bounds: Bounds, start: Sequence[int] | None, limit_s: float
) -> SolvedModel:
    """The placement of least Σ |d_s/c'_s − d_{s,o}/c_o|."""
    return objective_model(programme, rule, bounds).placed(start, limit_s)


def objective_model(programme: Programme, rule: SubDeadlineRule, bounds: Bounds) -> Model:
    """(3)–(6), with (7)–(11) as reachability."""
    model = Model(programme, bounds)
    for number, goal in enumerate(programme.goals):
        ideal = {unit: share / model.scale for unit, share in rule.ideal[number].items()}
        deadline = rule.deadline[number] / model.scale
        more, fewer, ends = {}, {}, {}
        for unit, before in goal.reads.items():
            price = model.scale / programme.cost[unit]
            room = max(0.0, ideal[unit] - bounds.least[unit] / model.scale)
            extra = max(0.0, bounds.most[unit] / model.scale - ideal[unit])
            more[unit] = model.column(0.0, extra, price)  # h⁻ and h⁺ of (4)
            fewer[unit] = model.column(0.0, room, price)
            model.row(-ideal[unit], inf, (more[unit], 1.0), (fewer[unit], -1.0), (model.d[unit], -1.0))
            if goal.is_chain:
                continue
            ends[unit] = model.column(0.0, deadline)
            for each in before or (None,):
                entries = [(ends[unit], 1.0), (more[unit], -1.0), (fewer[unit], 1.0)]
                if each is not None:
                    entries.append((ends[each], -1.0))
                model.row(ideal[unit], inf, *entries)
        if goal.is_chain:
            rest = [(column, 1.0) for column in more.values()] + [(column, -1.0) for column in fewer.values()]
            model.row(-inf, deadline - sum(ideal.values()), *rest)
    return model


def least_stretch(
    programme: Programme, bounds: Bounds, start: Sequence[int] | None, limit_s: float, target: float | None
) -> SolvedModel:
    """The placement that needs the least factor on all deadlines."""
    model = Model(programme, bounds)
    factor = model.column(0.0, inf, 1.0)
    for goal in programme.goals:
        ends: dict[int, int] = {}
        for unit, before in goal.reads.items():
            ends[unit] = model.column(0.0, inf)
            for each in before or (None,):
                entries = [(ends[unit], 1.0), (model.d[unit], -1.0)]
                if each is not None:
                    entries.append((ends[each], -1.0))
                model.row(0.0, inf, *entries)
        model.row(0.0, inf, (factor, float(goal.deadline) / model.scale), (ends[goal.last], -1.0))
    return model.placed(start, limit_s, target)
