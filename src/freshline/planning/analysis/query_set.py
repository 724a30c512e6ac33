"""Continuous queries as `freshline shed` reads them, and the outcome of each shedding rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Final

from freshline.base.duration import DAY, SECOND
from freshline.base.errors import InputError
from freshline.base.names import close_match, cut, one_of
from freshline.planning.analysis.admission import admit
from freshline.planning.analysis.best_shedding import best
from freshline.planning.analysis.json_input import number, positive, read_json, record, shown
from freshline.planning.analysis.levels import QueryLoad, is_schedulable, response_us
from freshline.planning.analysis.operators import SELECTIVITY_LEAST, OperatorCost, operator_cost
from freshline.planning.analysis.shedding import keep, shed, weighted_error
from freshline.planning.analysis.utilization import utilization
from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream

_REMEDY: Final = "Write the queries as `freshline shed --help` shows them"
_DECLARED: Final = ("cost", "fixed", "selectivity", "tuples")
_TREE: Final = ("window", "operators")
_KEYS: Final = ("name", "period", "deadline", *_DECLARED, "keep_least", "weight", "part", *_TREE)
_OPERATORS: Final = ("select", "project", "aggregate", "join")
_QUERIES_MAX: Final = 1_000
_DEPTH_MAX: Final = 50
_LONGEST_US: Final = 100 * 366 * DAY


def parse_query_set(text: str) -> list[QueryLoad]:
    """The queries that a JSON text describes; an `InputError` has the fault and a remedy.

    >>> parse_query_set('{"queries": [{"name": "a", "period": "2", "cost": 0.5, "weight": 5, '
    ...                 '"selectivity": "0.5", "tuples": 25000}]}')[0].cost_us
    500000
    """
    content = record(
        read_json(text, "query set", _REMEDY), "the query set", ("streams", "queries"), required=("queries",)
    )
    rates = _rates(content.get("streams", {}))
    queries = content["queries"]
    if not isinstance(queries, list) or not queries:
        raise InputError("queries is not a list with at least one query", 'Write "queries": [{"name": …}, …]')
    if len(queries) > _QUERIES_MAX:
        raise InputError(f"there are {len(queries):,} queries", f"Give at most {_QUERIES_MAX:,} of them")
    loads: dict[str, QueryLoad] = {}
    for position, query in enumerate(queries, start=1):
        load = _load(query, f"query {position}", rates)
        if load.name in loads:
            raise InputError(f"two queries have the name {cut(load.name)!r}", "Give each a name of its own")
        loads[load.name] = load
    return list(loads.values())


def answer(loads: Sequence[QueryLoad]) -> dict[str, object]:
    """The refused queries, and what each rule leaves to the others."""
    refused = admit(loads)
    names = {refusal.name for refusal in refused}
    admitted = [load for load in loads if load.name not in names]
    costs = {
        "paper": shed(admitted, "paper"),
        "least-overrun": shed(admitted, "least-overrun"),
        "least-error": shed(admitted, "least-error"),
        "best": best(admitted),
    }
    return {
        "schedulable": is_schedulable(loads),
        "utilization": utilization([load.cost_us for load in loads], [load.period_us for load in loads]),
        "refused": [
            {"name": name, "reason": reason, "period_least": None if least is None else least / SECOND}
            for name, reason, least in refused
        ],
        "rules": {rule: _outcome(admitted, costs_us) for rule, costs_us in costs.items()},
    }


def _outcome(loads: Sequence[QueryLoad], costs_us: Sequence[int] | None) -> dict[str, object]:
    assert costs_us is not None, "those taken in fit at their least costs"
    responses = response_us(loads, costs_us)
    return {
        "schedulable": is_schedulable(loads, costs_us),
        "weighted_error": float(weighted_error(loads, costs_us)),
        "queries": [
            _of_query(load, cost_us, response)
            for load, cost_us, response in zip(loads, costs_us, responses, strict=True)
        ],
    }


def _of_query(load: QueryLoad, cost_us: int, response: int | None) -> dict[str, object]:
    kept = keep(load, cost_us)
    lost = load.tuples * (1 - kept)
    return {
        "name": load.name,
        "cost": cost_us / SECOND,
        "keep": float(kept),
        "processing_error": float(lost),
        "output_error": float(load.selectivity * lost),
        "response_time": None if response is None else response / SECOND,
    }


def _rates(streams: object) -> dict[str, Decimal]:
    if not isinstance(streams, dict):
        raise InputError("streams is not an object", 'Write "streams": {"s1": {"rate": 12500}}')
    rates = {}
    for name, stream in streams.items():
        where = f"stream {cut(name)!r}"
        fields = record(stream, where, ("rate",), required=("rate",))
        rates[name] = _not_negative(fields["rate"], f"the rate of {where}")
    return rates


def _load(query: object, position: str, rates: Mapping[str, Decimal]) -> QueryLoad:
    fields = record(query, position, _KEYS, required=("name", "period", "weight"))
    name = fields["name"]
    if not isinstance(name, str) or not name:
        raise InputError(f"the name of {position} is {shown(name)}", "Give it a text that is not empty")
    of_query = f"of {cut(name)!r}"
    period_us = _exact_us(fields["period"], f"the period {of_query}")
    deadline_us = _exact_us(fields.get("deadline", fields["period"]), f"the deadline {of_query}")
    if deadline_us > period_us:
        raise InputError(
            f"the deadline {of_query} is {shown(fields['deadline'])}, beyond its period",
            "Give one of at most the period",
        )
    if "operators" in fields:
        cost = _cost_of_operators(fields, of_query, period_us, rates)
    else:
        cost = _declared_cost(fields, of_query)
    if cost.cost_us > _LONGEST_US:
        raise InputError(
            f"the cost {of_query} is above a hundred years", "Give fewer tuples, or a lower cost"
        )
    kept = number(fields.get("keep_least", 0), f"keep_least {of_query}")
    if not 0 <= kept <= 1:
        raise InputError(
            f"keep_least {of_query} is {shown(fields['keep_least'])}", "Give a share from 0 to 1"
        )
    least_us = cost.fixed_us + ceil((cost.cost_us - cost.fixed_us) * Fraction(kept))
    return QueryLoad(
        name,
        period_us,
        deadline_us,
        cost.cost_us,
        cost.fixed_us,
        max(1, least_us),
        _rounded_up_us(fields.get("part", 0), f"the part {of_query}"),
        Fraction(positive(fields["weight"], f"the weight {of_query}")),
        cost.selectivity,
        cost.tuples,
    )


def _declared_cost(fields: Mapping[str, object], of_query: str) -> OperatorCost:
    if "window" in fields:
        raise InputError(f"the window {of_query} is given without operators", "Remove it, or add operators")
    for key in ("cost", "selectivity", "tuples"):
        if key not in fields:
            raise InputError(f"there is no {key} {of_query}", f"Give its {key}, or its operators")
    positive(fields["cost"], f"the cost {of_query}")
    cost_us = _rounded_up_us(fields["cost"], f"the cost {of_query}")
    fixed_us = _rounded_up_us(fields.get("fixed", 0), f"the fixed part {of_query}")
    if fixed_us > cost_us:
        raise InputError(
            f"the fixed part {of_query} is {shown(fields['fixed'])}, above its cost",
            "Give one of at most the cost",
        )
    selectivity = _selectivity(fields["selectivity"], f"the selectivity {of_query}")
    tuples = Fraction(_not_negative(fields["tuples"], f"the tuples {of_query}"))
    return OperatorCost(cost_us, fixed_us, max(SELECTIVITY_LEAST, selectivity), tuples)


def _cost_of_operators(
    fields: Mapping[str, object], of_query: str, period_us: int, rates: Mapping[str, Decimal]
) -> OperatorCost:
    for key in _DECLARED:
        if key in fields:
            raise InputError(f"both {key} and operators {of_query} are given", "Give one of the two")
    window_us = _exact_us(fields["window"], f"the window {of_query}") if "window" in fields else period_us
    tree = _operator(fields["operators"], of_query, rates, depth=1)
    tuples = {name: Fraction(rate) * window_us / SECOND for name, rate in rates.items()}
    return operator_cost(tree, tuples)


def _operator(value: object, of_query: str, rates: Mapping[str, Decimal], depth: int) -> Operator:
    where = f"an operator {of_query}"
    if depth > _DEPTH_MAX:
        raise InputError(
            f"the operators {of_query} are nested too deeply", f"Use at most {_DEPTH_MAX} levels"
        )
    if isinstance(value, dict) and "op" not in value:
        return _stream(record(value, where, ("stream",), required=("stream",))["stream"], of_query, rates)
    op = value.get("op") if isinstance(value, dict) else None
    known = {
        "select": ("op", "selectivity", "input"),
        "project": ("op", "input"),
        "aggregate": ("op", "input"),
        "join": ("op", "selectivity", "inputs"),
    }.get(op if isinstance(op, str) else "", ())
    if isinstance(value, dict) and not known:
        raise InputError(f"{where} is {shown(op)}", f"Use {one_of(_OPERATORS)}")
    fields = record(value, where, known or ("op",), required=known)
    if op == "join":
        inputs = fields["inputs"]
        if not isinstance(inputs, list) or len(inputs) != 2:
            raise InputError(f"a join {of_query} does not have two inputs", 'Write "inputs": [left, right]')
        left, right = (_operator(each, of_query, rates, depth + 1) for each in inputs)
        return Join(_selectivity(fields["selectivity"], f"a selectivity {of_query}"), left, right)
    below = _operator(fields["input"], of_query, rates, depth + 1)
    if op == "select":
        return Select(_selectivity(fields["selectivity"], f"a selectivity {of_query}"), below)
    return Project(below) if op == "project" else Aggregate(below)


def _stream(name: object, of_query: str, rates: Mapping[str, Decimal]) -> Stream:
    if not isinstance(name, str):
        raise InputError(f"a stream {of_query} is {shown(name)}", "Give the name of a stream")
    if name not in rates:
        close = close_match(name, rates)
        remedy = f"Did you mean {close!r}?" if close else "Add it to streams, with its rate"
        raise InputError(f"there is no stream {cut(name)!r} {of_query}", remedy.rstrip("."))
    return Stream(name)


def _selectivity(value: object, where: str) -> Fraction:
    found = number(value, where)
    if not 0 < found <= 1:
        raise InputError(f"{where} is {shown(value)}", "Give a number above 0 and at most 1")
    return Fraction(found)


def _not_negative(value: object, where: str) -> Decimal:
    found = number(value, where)
    if found < 0:
        raise InputError(f"{where} is {shown(value)}", "Give a number of 0 or more")
    return found


def _exact_us(value: object, where: str) -> int:
    """A time that must be exact."""
    time_us = Fraction(positive(value, where)) * SECOND
    if time_us.denominator != 1:
        raise InputError(f"{where} is {shown(value)}, finer than a microsecond", "Round it to microseconds")
    return _not_too_long(int(time_us), value, where)


def _rounded_up_us(value: object, where: str) -> int:
    """A cost: a part of a microsecond counts as a whole one."""
    return _not_too_long(ceil(Fraction(_not_negative(value, where)) * SECOND), value, where)


def _not_too_long(time_us: int, value: object, where: str) -> int:
    if time_us > _LONGEST_US:
        raise InputError(f"{where} is {shown(value)}, above a hundred years", "Give it in seconds")
    return time_us
