"""Random plans of operators with end-to-end deadlines: large ones, and small ones with every feature."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from random import Random

from freshline.planning.placement.plan import (
    Operator,
    PlacementNode,
    PlacementOutput,
    PlacementPlan,
    StreamSource,
)

_SHAPES = ("chain", "diamond", "fork", "join")
_FIRST_PINNED = 0.8
_PINNED = 1 / 8


def large_plan(seed: int, operators: int, nodes: int, least: float, most: float) -> PlacementPlan:
    """Queries of 3 to 8 operators, some of them and most first ones pinned; deadlines are multiples of Σ c.

    The last query has the operators that are left.
    """
    random = Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    sources: list[StreamSource] = []
    placed: list[Operator] = []
    outputs: list[PlacementOutput] = []
    while len(placed) < operators:
        size = random.randint(3, 8)
        if operators - len(placed) - size < 3:
            size = operators - len(placed)
        reads, last = _shape(random, size)
        first = len(placed)
        costs = [Fraction(random.randint(50, 1000), 100) for _ in range(size)]
        for number, before in enumerate(reads):
            inputs = [f"o{first + each}" for each in before]
            where = random.choice(names)
            if not before:
                inputs = [f"s{first + number}"]
                sources.append(StreamSource(inputs[0], where))
            is_pinned = random.random() < (_PINNED if before else _FIRST_PINNED)
            name = f"o{first + number}"
            placed.append(
                Operator(name, tuple(inputs), (name,), costs[number], (where,) if is_pinned else None)
            )
        for number in last:
            work = sum((costs[each] for each in _needed(reads, number)), start=Fraction(0))
            times = Fraction(round(random.uniform(least, most) * 100), 100)
            outputs.append(PlacementOutput(f"o{first + number}", work * times))
    return PlacementPlan(
        tuple([PlacementNode(name) for name in names]), tuple(sources), tuple(placed), tuple(outputs)
    )


def overloaded_plan(seed: int, operators: int, nodes: int) -> PlacementPlan:
    """A large plan with more work pinned to its first node than that node can do in time."""
    plan = large_plan(seed, operators - 4, nodes, 4, 40)
    names = [f"p{number}" for number in range(4)]
    return PlacementPlan(
        plan.nodes,
        (*plan.sources, StreamSource("s", "n0")),
        (*plan.operators, *(Operator(name, ("s",), (name,), Fraction(5), ("n0",)) for name in names)),
        (*plan.outputs, *(PlacementOutput(name, Fraction(12)) for name in names)),
    )


def small_plan(seed: int, operators: int = 9) -> PlacementPlan:
    """Three or four nodes with links, speeds, blocking and sinks; operators that several outputs share."""
    random = Random(seed)
    nodes = tuple(
        PlacementNode(
            f"n{number}",
            random.choice((Fraction(1), Fraction(1), Fraction(2), Fraction(1, 2))),
            random.choice((Fraction(0), Fraction(0), Fraction(1, 2))),
        )
        for number in range(random.randint(3, 4))
    )
    names = [node.name for node in nodes]
    links = None
    if random.random() < 0.6:
        pairs = [(one, other) for one in names for other in names if one != other]
        links = tuple(sorted(random.sample(pairs, random.randint(len(names), len(pairs)))))
    sources = tuple(
        StreamSource(f"s{number}", random.choice(names)) for number in range(random.randint(1, 3))
    )
    streams = [source.stream for source in sources]
    placed: list[Operator] = []
    for number in range(operators):
        inputs = tuple(sorted(set(random.choices(streams[-5:], k=random.choice((1, 1, 1, 2))))))
        own = (f"o{number}", f"o{number}b") if random.random() < 0.1 else (f"o{number}",)
        where = None
        before = next((each for each in placed if each.outputs == inputs), None)
        if before is not None and random.random() < 0.4:
            where = before.nodes  # a unit, if it is one node and has no other reader
        elif random.random() < 0.5:
            where = tuple(sorted(random.sample(names, random.choice((1, 1, 2)))))
        placed.append(Operator(f"o{number}", inputs, own, Fraction(random.randint(1, 100), 10), where))
        streams += own
    made = [stream for operator in placed for stream in operator.outputs]
    read = {stream for operator in placed for stream in operator.inputs}
    shown = [stream for stream in made if stream not in read or random.random() < 0.15]
    shown = shown[:-1] if len(shown) > 2 and random.random() < 0.3 else shown  # some work is unneeded
    by_name = {stream: operator for operator in placed for stream in operator.outputs}
    outputs = tuple(
        PlacementOutput(
            stream,
            _work(by_name, stream) * Fraction(random.randint(8, 80), 10),
            random.choice(names) if random.random() < 0.3 else None,
        )
        for stream in shown
    )
    return PlacementPlan(nodes, sources, tuple(placed), outputs, links)


def _shape(random: Random, size: int) -> tuple[list[list[int]], list[int]]:
    """By operator: those that it reads; and the operators that make outputs."""
    shape = random.choice(_SHAPES)
    if shape == "chain" or size < 4:
        return [[number - 1] if number else [] for number in range(size)], [size - 1]
    begins, ends = shape in ("diamond", "fork"), shape in ("diamond", "join")
    inner = list(range(int(begins), size - int(ends)))
    cut = random.randint(1, len(inner) - 1)
    reads: list[list[int]] = [[] for _ in range(size)]
    for branch in (inner[:cut], inner[cut:]):
        for before, number in pairwise([0, *branch] if begins else branch):
            reads[number] = [before]
        if ends:
            reads[size - 1].append(branch[-1])
    return reads, [size - 1] if ends else [inner[cut - 1], inner[-1]]


def _needed(reads: list[list[int]], number: int) -> set[int]:
    return {number}.union(*(_needed(reads, before) for before in reads[number]))


def _work(by_stream: dict[str, Operator], stream: str) -> Fraction:
    """Σ c over Pre(s)."""
    needed: dict[str, Fraction] = {}
    waiting = [stream]
    while waiting:
        operator = by_stream.get(waiting.pop())
        if operator is not None and operator.name not in needed:
            needed[operator.name] = operator.cost
            waiting += operator.inputs
    return sum(needed.values(), start=Fraction(0))
