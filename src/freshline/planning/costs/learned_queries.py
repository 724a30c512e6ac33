"""Adds learned costs of answers to a warehouse, for queries without a declared one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from math import ceil
from statistics import median
from typing import Final, Protocol

from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.queries import Query
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.iterations import FittedParts, PastPart, fit_parts, part_length_us
from freshline.planning.costs.learned import LearnedCosts
from freshline.sql.slices import SLICES

_RATE_GRAIN: Final = 1_000_000
# The cost assumed of a query before its first run: Spark's jobs, and little for its rows.
_PROVISIONAL: Final = Cost(300_000, Fraction(1, 1_000), loaded=True)


class PartHistory(Protocol):
    """The history of the parts of answers."""

    def parts(self, query: str) -> Sequence[PastPart]: ...


def learned_query_costs(warehouse: Warehouse, history: PartHistory) -> LearnedCosts:
    """Adds the cost of every query that declares none and was answered often enough."""
    queries = dict(warehouse.queries)
    answers: dict[str, int] = {}
    for name, query in warehouse.queries.items():
        if query.cost is None:
            parts = parts_of(history, query)
            fitted = fit_parts(parts)
            if fitted is not None:
                queries[name] = replace(query, cost=_cost_of(query, parts, fitted))
                answers[name] = fitted.iterations
    return LearnedCosts(replace(warehouse, queries=queries) if answers else warehouse, answers)


def with_known_costs(warehouse: Warehouse, history: PartHistory) -> Warehouse:
    """Costs for the plan: declared, learned from answers, or assumed, in this order."""
    learned = learned_query_costs(warehouse, history).warehouse
    queries = {name: with_some_cost(query) for name, query in learned.queries.items()}
    return replace(warehouse, queries=queries) if queries else warehouse


def with_some_cost(query: Query) -> Query:
    """A declared or assumed cost, to plan other queries beside it."""
    return query if query.cost is not None else replace(query, cost=_PROVISIONAL)


def parts_of(history: PartHistory, query: Query) -> Sequence[PastPart]:
    """The parts of that query's answers in earlier runs."""
    return history.parts(key_of(query))


def key_of(query: Query) -> str:
    """Queries of one name and one text share their costs."""
    return f"{query.name} {hashlib.blake2b(query.sql.encode(), digest_size=8).hexdigest()}"


def _cost_of(query: Query, parts: Sequence[PastPart], fitted: FittedParts) -> Cost:
    """The cost over a past window, in parts as long as without other queries."""
    part_us = query.part_us or part_length_us(query.deadline_us, fitted.part_us)
    cost_us, fixed_us = fitted.cost_us(_rows_of_windows(parts), part_us)
    rate = Fraction(ceil(Fraction(cost_us - fixed_us, query.window_us) * _RATE_GRAIN), _RATE_GRAIN)
    return Cost(fixed_us, rate, loaded=True)  # answers were measured beside all other work


def _rows_of_windows(parts: Sequence[PastPart]) -> int:
    """The median number of rows of a whole window."""
    whole = []
    for _, group in groupby(parts, key=lambda part: part.iteration):
        read = [part for part in group if part.slices]
        if read:
            whole.append(sum(part.rows for part in read) * SLICES / sum(part.slices for part in read))
    return round(median(whole or [0.0]))
