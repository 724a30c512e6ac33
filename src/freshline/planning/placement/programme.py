"""A plan as a programme: units in the order of (6), the units that outputs need, and their possible nodes.

Operators that are chained one to one and can only be on the same node are one unit. Alone, each would have to
finish within its small share of the deadline, although it waits for the one before it anyway (the paper's own
query would need deadlines 3.6 times as long).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from freshline.planning.placement.links import Links
from freshline.planning.placement.plan import Operator, PlacementPlan

# An excess over a limit below this share is tolerated.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Unit:
    """Operators that are placed together, in the order in which they run, by their places in the file."""

    operators: tuple[int, ...]
    cost: Fraction


@dataclass(frozen=True, slots=True)
class Goal:
    """An output: its deadline, and Pre(s), producers first, each with its sources in Pre(s)."""

    stream: str
    deadline: Fraction
    last: int  # the unit that makes it
    reads: Mapping[int, tuple[int, ...]]

    @property
    def units(self) -> tuple[int, ...]:
        return tuple(self.reads)

    @property
    def is_chain(self) -> bool:
        return all(len(before) <= 1 for before in self.reads.values())


@dataclass(frozen=True)
class Programme:
    """All that decides the placement. Units, nodes and goals have numbers."""

    plan: PlacementPlan
    links: Links
    units: tuple[Unit, ...]
    edges: tuple[tuple[int, int], ...]  # (producer, consumer)
    allowed: tuple[int, ...]  # by unit: the nodes that its operators, sources and sinks allow
    goals: tuple[Goal, ...]
    order: tuple[int, ...]  # the units that outputs need: by δ, then by place in the file

    @cached_property
    def domains(self) -> tuple[int, ...]:
        """By unit: the allowed nodes within reach of its neighbours' nodes."""
        return narrowed(self.allowed, self.edges, self.links)

    @cached_property
    def cost(self) -> list[float]:
        return [float(unit.cost) for unit in self.units]

    @cached_property
    def work(self) -> float:
        """Σ c of all units that outputs need."""
        return sum(self.cost[unit] for unit in self.order)

    @cached_property
    def speed(self) -> list[float]:
        return [float(node.speed) for node in self.plan.nodes]

    @cached_property
    def blocking(self) -> list[float]:
        return [float(node.blocking) for node in self.plan.nodes]

    @cached_property
    def rank(self) -> dict[int, int]:
        return {unit: place for place, unit in enumerate(self.order)}

    @cached_property
    def ratio(self) -> list[float]:
        """d_s/c'_s by goal."""
        return [
            float(goal.deadline / sum((self.units[unit].cost for unit in goal.units), start=Fraction(0)))
            for goal in self.goals
        ]

    @cached_property
    def goals_of(self) -> dict[int, list[int]]:
        """By unit: the outputs that need it."""
        found: dict[int, list[int]] = {unit: [] for unit in self.order}
        for number, goal in enumerate(self.goals):
            for unit in goal.units:
                found[unit].append(number)
        return found

    @cached_property
    def neighbours(self) -> list[tuple[list[int], list[int]]]:
        """By unit: those that it reads and those that read it."""
        found: list[tuple[list[int], list[int]]] = [([], []) for _ in self.units]
        for producer, consumer in self.edges:
            found[consumer][0].append(producer)
            found[producer][1].append(consumer)
        return found


def programme_of(
    plan: PlacementPlan, kept: Mapping[str, str] | None = None, joining: bool = True
) -> Programme:
    """The programme of a plan; operators in `kept` stay on their named node."""
    node_of = {node.name: number for number, node in enumerate(plan.nodes)}
    pairs = None if plan.links is None else [(node_of[one], node_of[other]) for one, other in plan.links]
    links = Links.of(len(plan.nodes), pairs)
    allowed = [_nodes(operator.nodes, node_of) for operator in plan.operators]
    units = _units(plan, allowed if joining else [0] * len(allowed))
    unit_of = {operator: number for number, unit in enumerate(units) for operator in unit.operators}
    made_by = {
        stream: number for number, operator in enumerate(plan.operators) for stream in operator.outputs
    }
    edges = dict.fromkeys(
        (unit_of[made_by[stream]], unit_of[number])
        for number, operator in enumerate(plan.operators)
        for stream in operator.inputs
        if stream in made_by
    )
    between = tuple((one, other) for one, other in edges if one != other)
    for number, operator in enumerate(plan.operators):
        if kept and operator.name in kept:
            allowed[number] &= 1 << node_of[kept[operator.name]]
    goals = _goals(plan, unit_of, made_by, between)
    return Programme(
        plan=plan,
        links=links,
        units=units,
        edges=between,
        allowed=_allowed(plan, links, units, allowed, node_of),
        goals=goals,
        order=_order(units, goals),
    )


def topological(plan: PlacementPlan) -> list[int]:
    """The places of operators, each after those it reads; without those on or after a cycle."""
    made = {stream for operator in plan.operators for stream in operator.outputs}
    readers: dict[str, list[int]] = defaultdict(list)
    missing = [0] * len(plan.operators)
    for place, operator in enumerate(plan.operators):
        for stream in operator.inputs:
            readers[stream].append(place)
            missing[place] += stream in made
    found = [place for place, count in enumerate(missing) if count == 0]
    for place in found:  # grows on the way
        for stream in plan.operators[place].outputs:
            for reader in readers[stream]:
                missing[reader] -= 1
                if missing[reader] == 0:
                    found.append(reader)
    return found


def narrowed(domains: Sequence[int], edges: Sequence[tuple[int, int]], links: Links) -> tuple[int, ...]:
    """The domains without nodes that no node of a neighbour reaches, or that reach none."""
    found = list(domains)
    changed = True
    while changed:
        changed = False
        for producer, consumer in edges:
            down = found[consumer] & links.after(found[producer])
            up = found[producer] & links.before(down)
            changed |= down != found[consumer] or up != found[producer]
            found[consumer], found[producer] = down, up
    return tuple(found)


def _nodes(names: Sequence[str] | None, node_of: Mapping[str, int]) -> int:
    return sum(1 << node_of[name] for name in (node_of if names is None else names))


def _units(plan: PlacementPlan, allowed: Sequence[int]) -> tuple[Unit, ...]:
    """Units in the order of the file: operators chained one to one and allowed on one same node."""
    consumers: dict[str, list[int]] = defaultdict(list)
    for number, operator in enumerate(plan.operators):
        for stream in operator.inputs:
            consumers[stream].append(number)
    shown = {output.stream for output in plan.outputs}

    def joined(number: int) -> int | None:
        operator = plan.operators[number]
        if len(operator.outputs) != 1 or operator.outputs[0] in shown or allowed[number].bit_count() != 1:
            return None
        readers = consumers[operator.outputs[0]]
        if len(readers) != 1 or len(plan.operators[readers[0]].inputs) != 1:
            return None
        return readers[0] if allowed[readers[0]] == allowed[number] else None

    following = {number: joined(number) for number in range(len(plan.operators))}
    continued = set(following.values())
    units = []
    for first in range(len(plan.operators)):
        if first not in continued:
            chain = [first]
            while (after := following[chain[-1]]) is not None:
                chain.append(after)
            units.append(Unit(tuple(chain), sum((plan.operators[each].cost for each in chain), Fraction(0))))
    return tuple(units)


def _allowed(
    plan: PlacementPlan,
    links: Links,
    units: Sequence[Unit],
    allowed: Sequence[int],
    node_of: Mapping[str, int],
) -> tuple[int, ...]:
    """By unit: the nodes that its operators, its sources and the sinks of its outputs allow."""
    at: dict[str, int] = defaultdict(int)
    for source in plan.sources:
        at[source.stream] |= 1 << node_of[source.node]
    sinks = {output.stream: output.node for output in plan.outputs if output.node is not None}

    def within(operator: Operator) -> int:
        nodes = -1
        for stream in operator.inputs:
            nodes &= links.after(at[stream]) if stream in at else -1
        for stream in operator.outputs:
            nodes &= links.reached_from[node_of[sinks[stream]]] if stream in sinks else -1
        return nodes

    domains = []
    for unit in units:
        domain = -1
        for number in unit.operators:
            domain &= allowed[number] & within(plan.operators[number])
        domains.append(domain)
    return tuple(domains)


def _goals(
    plan: PlacementPlan,
    unit_of: Mapping[int, int],
    made_by: Mapping[str, int],
    edges: Sequence[tuple[int, int]],
) -> tuple[Goal, ...]:
    reads: dict[int, list[int]] = defaultdict(list)
    for producer, consumer in edges:
        reads[consumer].append(producer)
    goals = []
    for output in plan.outputs:
        last = unit_of[made_by[output.stream]]
        goals.append(Goal(output.stream, output.deadline, last, upstream(last, reads)))
    return tuple(goals)


def upstream(last: int, reads: Mapping[int, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """A unit and all that it needs, producers first, each with its sources."""
    found: dict[int, tuple[int, ...]] = {}
    waiting = [(last, False)]
    while waiting:  # without recursion: chains may be long
        unit, is_ready = waiting.pop()
        if is_ready:
            found[unit] = tuple(reads.get(unit, ()))
        elif unit not in found:
            waiting.append((unit, True))
            waiting += [(each, False) for each in reversed(reads.get(unit, ())) if each not in found]
    return found


def _order(units: Sequence[Unit], goals: Sequence[Goal]) -> tuple[int, ...]:
    """By δ, exactly: float rounding must not swap units of equal δ."""
    delta: dict[int, Fraction] = {}
    for goal in goals:
        whole = sum((units[unit].cost for unit in goal.units), start=Fraction(0))
        for unit in goal.units:
            share = units[unit].cost * goal.deadline / whole
            delta[unit] = min(share, delta.get(unit, share))
    return tuple(sorted(delta, key=lambda unit: (delta[unit], units[unit].operators[0])))
