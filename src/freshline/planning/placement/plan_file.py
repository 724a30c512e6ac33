"""A plan as `freshline place` reads it: every name known, every number exact, a path to every output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final, TypeVar

from freshline.base.errors import InputError
from freshline.base.names import close_match, cut, one_of
from freshline.planning.analysis.json_input import number, positive, read_json, record, shown
from freshline.planning.placement.plan import (
    Operator,
    PlacementNode,
    PlacementOutput,
    PlacementPlan,
    StreamSource,
)
from freshline.planning.placement.programme import Programme, narrowed, programme_of, topological, upstream

_REMEDY: Final = "Write the plan as `freshline place --help` shows it"
_KEYS: Final = ("nodes", "links", "sources", "operators", "outputs")
_MOST: Final = {"nodes": 1_000, "links": 100_000, "sources": 10_000, "operators": 10_000, "outputs": 10_000}
_LISTED_MAX: Final = 10

_Entry = TypeVar("_Entry")


def parse_plan(text: str) -> PlacementPlan:
    """The plan that a JSON text describes; an `InputError` has the fault and a remedy.

    >>> plan = parse_plan('{"nodes": [{"name": "edge"}], "sources": [{"stream": "s", "node": "edge"}], '
    ...                   '"operators": [{"name": "o", "inputs": ["s"], "cost": "0.1"}], '
    ...                   '"outputs": [{"stream": "o", "deadline": 1}]}')
    >>> plan.operators[0].cost
    Fraction(1, 10)
    """
    required = ("nodes", "sources", "operators", "outputs")
    content = record(read_json(text, "plan", _REMEDY), "the plan", _KEYS, required)
    nodes = _entries(content, "nodes", _node)
    _unrepeated([node.name for node in nodes], "nodes", "name")
    names = [node.name for node in nodes]
    links = None
    if "links" in content:
        links = _entries(content, "links", lambda value, where: _link(value, where, names), may_be_empty=True)
        _unrepeated([f"{one} → {other}" for one, other in links], "links", "ends")
    sources = _entries(content, "sources", lambda value, where: _source(value, where, names))
    _unrepeated([f"{each.stream} at {each.node}" for each in sources], "sources", "stream and node")
    operators = _entries(content, "operators", lambda value, where: _operator(value, where, names))
    _unrepeated([operator.name for operator in operators], "operators", "name")
    outputs = _entries(content, "outputs", lambda value, where: _output(value, where, names))
    _unrepeated([output.stream for output in outputs], "outputs", "stream")
    plan = PlacementPlan(nodes, sources, operators, outputs, links)
    _check_streams(plan)
    _check_cycles(plan)
    _check_ways(plan)
    return plan


def _entries(
    content: Mapping[str, object],
    key: str,
    made: Callable[[object, str], _Entry],
    may_be_empty: bool = False,
) -> tuple[_Entry, ...]:
    value = content[key]
    if not isinstance(value, list) or not (value or may_be_empty):
        raise InputError(f"{key} is not a list with at least one entry", _REMEDY)
    if len(value) > _MOST[key]:
        raise InputError(f"there are {len(value):,} {key}", f"Give at most {_MOST[key]:,} of them")
    return tuple([made(each, f"{key[:-1]} {place}") for place, each in enumerate(value, start=1)])


def _node(value: object, where: str) -> PlacementNode:
    fields = record(value, where, ("name", "speed", "blocking"), required=("name",))
    name = _text(fields["name"], f"the name of {where}")
    return PlacementNode(
        name,
        Fraction(positive(fields.get("speed", 1), f"the speed of {cut(name)!r}")),
        _not_negative(fields.get("blocking", 0), f"the blocking of {cut(name)!r}"),
    )


def _link(value: object, where: str, nodes: Sequence[str]) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:
        raise InputError(f"{where} is {shown(value)}", 'Write the two nodes, such as ["edge", "centre"]')
    one, other = [_known(_text(each, where), where, nodes) for each in value]
    if one == other:
        raise InputError(
            f"{where} is from {cut(one)!r} to itself", "Remove it: a node needs no link to itself"
        )
    return one, other


def _source(value: object, where: str, nodes: Sequence[str]) -> StreamSource:
    fields = record(value, where, ("stream", "node", "rate"), required=("stream", "node"))
    stream = _text(fields["stream"], f"the stream of {where}")
    of_it = f"of source {cut(stream)!r}"
    return StreamSource(
        stream,
        _known(_text(fields["node"], f"the node {of_it}"), f"source {cut(stream)!r}", nodes),
        _not_negative(fields.get("rate", 1), f"the rate {of_it}"),
    )


def _operator(value: object, where: str, nodes: Sequence[str]) -> Operator:
    known = ("name", "inputs", "outputs", "cost", "nodes", "selectivity")
    fields = record(value, where, known, required=("name", "inputs", "cost"))
    name = _text(fields["name"], f"the name of {where}")
    where = f"operator {cut(name)!r}"
    allowed = None
    if "nodes" in fields:
        if fields["nodes"] == []:
            raise InputError(
                f"no node may run {where}", "Name a node in its nodes, or leave them out for all"
            )
        allowed = _texts(fields["nodes"], f"the nodes of {where}")
        for node in allowed:
            _known(node, where, nodes)
    return Operator(
        name,
        _texts(fields["inputs"], f"the inputs of {where}"),
        _texts(fields.get("outputs", [name]), f"the outputs of {where}"),
        Fraction(positive(fields["cost"], f"the cost of {where}")),
        allowed,
        _not_negative(fields.get("selectivity", 1), f"the selectivity of {where}"),
    )


def _output(value: object, where: str, nodes: Sequence[str]) -> PlacementOutput:
    fields = record(value, where, ("stream", "deadline", "node"), required=("stream", "deadline"))
    stream = _text(fields["stream"], f"the stream of {where}")
    of_it = f"of output {cut(stream)!r}"
    node = None
    if "node" in fields:
        node = _known(_text(fields["node"], f"the node {of_it}"), f"output {cut(stream)!r}", nodes)
    return PlacementOutput(stream, Fraction(positive(fields["deadline"], f"the deadline {of_it}")), node)


def _check_streams(plan: PlacementPlan) -> None:
    """Checks that every stream has one origin, also those that are read or put out."""
    rates: dict[str, Fraction] = {}
    for source in plan.sources:
        if rates.setdefault(source.stream, source.rate) != source.rate:
            raise InputError(f"source {cut(source.stream)!r} has two rates", "Give it the same at every node")
    made: dict[str, str] = {}
    for operator in plan.operators:
        for stream in operator.outputs:
            other = "a source" if stream in rates else made.get(stream)
            if other is not None:
                raise InputError(
                    f"operator {cut(operator.name)!r} makes the stream {cut(stream)!r}, as {cut(other)} does",
                    "Give each a stream of its own",
                )
            made[stream] = operator.name
    for operator in plan.operators:
        for stream in operator.inputs:
            if stream not in made and stream not in rates:
                raise InputError(
                    f"operator {cut(operator.name)!r} reads the stream {cut(stream)!r}, which nothing makes",
                    _meant(stream, [*rates, *made], "Add a source or an operator for it"),
                )
    for output in plan.outputs:
        if output.stream not in made:
            raise InputError(
                f"no operator makes the output {cut(output.stream)!r}",
                _meant(output.stream, made, "Name a stream that an operator makes"),
            )


def _check_cycles(plan: PlacementPlan) -> None:
    in_order = set(topological(plan))
    left = [operator for place, operator in enumerate(plan.operators) if place not in in_order]
    if not left:
        return
    made_by = {stream: operator for operator in left for stream in operator.outputs}
    seen: dict[str, None] = {}
    at = left[0]
    while at.name not in seen:  # each operator left reads another one left
        seen[at.name] = None
        at = next(made_by[stream] for stream in at.inputs if stream in made_by)
    names = list(seen)[list(seen).index(at.name) :][::-1]
    first = names.index(min(names, key=[operator.name for operator in left].index))
    names = names[first:] + names[:first]
    cycle = " → ".join(cut(name) for name in [*names[:_LISTED_MAX], names[0]])
    raise InputError(f"the operators {cycle} read one another in a cycle", "Take one of the streams away")


def _check_ways(plan: PlacementPlan) -> None:
    """Checks that each output, and each operator, can be placed: links bring every stream to its readers.

    The programme decides whether all can be placed at once.
    """
    programme = programme_of(plan)
    if all(programme.domains):
        return
    ways = [(f"output {cut(goal.stream)!r} has no path", goal.reads) for goal in programme.goals]
    reads = {unit: before for unit, (before, _) in enumerate(programme.neighbours)}
    for unit in range(len(programme.units)):
        if unit not in programme.rank:
            name = plan.operators[programme.units[unit].operators[0]].name
            ways.append((f"no node may run operator {cut(name)!r}", upstream(unit, reads)))
    for sentence, needed in ways:
        edges = [(before, unit) for unit, reads_of in needed.items() for before in reads_of]
        domains = narrowed(programme.allowed, edges, programme.links)
        if not all(domains[unit] for unit in needed):
            raise InputError(f"{sentence}: {_obstacle(programme, needed)}", "Add a link, or name other nodes")


def _obstacle(programme: Programme, needed: Mapping[int, Sequence[int]]) -> str:
    """The first operator on the path that no node can run."""
    domains: dict[int, int] = {}
    for unit, reads in needed.items():
        domains[unit] = programme.allowed[unit]
        for before in reads:
            domains[unit] &= programme.links.after(domains[before])
        if not domains[unit]:
            name = programme.plan.operators[programme.units[unit].operators[0]].name
            return (
                f"over the links none of the nodes of {cut(name)!r} can get its inputs and pass on its result"
            )
    return "over the links its operators cannot be placed together"


def _known(name: str, where: str, nodes: Sequence[str]) -> str:
    if name not in nodes:
        raise InputError(
            f"{where} names the unknown node {cut(name)!r}", _meant(name, nodes, "Add it to nodes")
        )
    return name


def _meant(name: str, names: Iterable[str], otherwise: str) -> str:
    names = list(names)
    match = close_match(name, names)
    if match:
        return f"Perhaps `{cut(match)}` is meant"
    return f"{otherwise}, or name {one_of(map(cut, names))}" if 0 < len(names) <= _LISTED_MAX else otherwise


def _unrepeated(names: Sequence[str], section: str, what: str) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InputError(
                f"two {section} have the {what} {cut(name)!r}", "Keep one, or rename one of them"
            )
        seen.add(name)


def _texts(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise InputError(f"{where} are not a list with at least one name", 'Write them as ["a", "b"]')
    found = tuple([_text(each, f"one of {where}") for each in value])
    if len(set(found)) < len(found):
        raise InputError(f"{where} have a name twice", "Keep one of the two")
    return found


def _text(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} is {shown(value)}", "Give it a text that is not empty")
    return value


def _not_negative(value: object, where: str) -> Fraction:
    found = Fraction(number(value, where))
    if found < 0:
        raise InputError(f"{where} is {shown(value)}", "Give a number of at least zero")
    return found
