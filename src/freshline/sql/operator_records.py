"""Converts trees of operators to plain records and back, for journals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream


def operator_record(operator: Operator) -> dict[str, Any]:
    """The record of an operator, in the form that `freshline shed` reads.

    >>> operator_record(Aggregate(Stream("packets")))
    {'op': 'aggregate', 'input': {'stream': 'packets'}}
    """
    match operator:
        case Stream(name):
            return {"stream": name}
        case Select(selectivity, below):
            return {"op": "select", "selectivity": str(selectivity), "input": operator_record(below)}
        case Project(below):
            return {"op": "project", "input": operator_record(below)}
        case Aggregate(below):
            return {"op": "aggregate", "input": operator_record(below)}
        case Join(selectivity, left, right):
            inputs = [operator_record(left), operator_record(right)]
            return {"op": "join", "selectivity": str(selectivity), "inputs": inputs}


def operator_of(record: dict[str, Any]) -> Operator:
    """The operator that `operator_record` wrote."""
    match record:
        case {"stream": name}:
            return Stream(name)
        case {"op": "select", "selectivity": selectivity, "input": below}:
            return Select(Fraction(selectivity), operator_of(below))
        case {"op": "project", "input": below}:
            return Project(operator_of(below))
        case {"op": "aggregate", "input": below}:
            return Aggregate(operator_of(below))
        case {"op": "join", "selectivity": selectivity, "inputs": [left, right]}:
            return Join(Fraction(selectivity), operator_of(left), operator_of(right))
    raise ValueError(f"{record} is no operator")
