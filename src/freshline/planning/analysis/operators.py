"""The cost of a query from its operators (paper 000, Table 1 and (3)–(7))."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final, NamedTuple

from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream

# Table 1, in µs for a tuple.
READ: Final = Fraction(1)
WRITE: Final = Fraction(1)
COMPARE: Final = Fraction(5, 2)
PROJECT: Final = Fraction(2)
ARITHMETIC: Final = Fraction(3)
PROBE: Final = Fraction(3)
HASH: Final = Fraction(5, 2)

# A query with hardly any output must not be shed entirely for that reason.
SELECTIVITY_LEAST: Final = Fraction(1, 1000)


class OperatorCost(NamedTuple):
    """F(k) = fixed + (cost − fixed)·k for a share k of the window, and the units of its error."""

    cost_us: int
    fixed_us: int
    selectivity: Fraction  # output over the tuples of all windows
    tuples: Fraction


class _Flow(NamedTuple):
    """The totals of an operator and all below it."""

    read: Fraction  # tuples of the streams' windows
    output: Fraction
    cost_us: Fraction
    fixed_us: Fraction


def operator_cost(operator: Operator, tuples: Mapping[str, Fraction | int]) -> OperatorCost:
    """The cost of a query with that many tuples of each stream in its window.

    >>> half = Fraction(1, 2)
    >>> operator_cost(Project(Select(half, Stream("s"))), {"s": 25_000})
    OperatorCost(cost_us=150000, fixed_us=0, selectivity=Fraction(1, 2), tuples=Fraction(25000, 1))
    """
    flow = _flow(operator, tuples)
    # Without any tuples, one tuple of each stream shows the share of output.
    share = flow if flow.read else _flow(operator, dict.fromkeys(tuples, 1))
    selectivity = max(SELECTIVITY_LEAST, share.output / share.read)
    return OperatorCost(max(1, ceil(flow.cost_us)), int(flow.fixed_us), selectivity, flow.read)


def _flow(operator: Operator, tuples: Mapping[str, Fraction | int]) -> _Flow:
    match operator:
        case Stream(name):
            read = Fraction(tuples[name])
            return _Flow(read, read, Fraction(0), Fraction(0))
        case Select(selectivity, below):
            return _after(_flow(below, tuples), COMPARE, selectivity)
        case Project(below):
            return _after(_flow(below, tuples), PROJECT, Fraction(1))
        case Aggregate(below):
            # Every tuple counts in its result, which is written once, however few tuples are read.
            flow = _flow(below, tuples)
            cost_us = flow.cost_us + flow.output * (READ + ARITHMETIC) + WRITE
            return flow._replace(cost_us=cost_us, fixed_us=flow.fixed_us + WRITE)
        case Join(selectivity, left, right):
            sides = zip(_flow(left, tuples), _flow(right, tuples), strict=True)
            return _after(_Flow(*(one + other for one, other in sides)), PROBE + HASH, selectivity)


def _after(flow: _Flow, process: Fraction, selectivity: Fraction) -> _Flow:
    """Adds an operator: it reads the output below, processes it, and writes its share."""
    cost_us = flow.cost_us + flow.output * (READ + process + selectivity * WRITE)
    return flow._replace(output=flow.output * selectivity, cost_us=cost_us)
