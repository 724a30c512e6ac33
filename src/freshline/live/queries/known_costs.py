"""What queries cost: as they are planned, before and after they have run, and as it is measured."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.queries import Query
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.queries.query_spec import QueryMeasure
from freshline.kernel.queries.task import QueryTask
from freshline.live.queries.running_query import running_query
from freshline.live.queries.window_rows import WindowRows
from freshline.planning.costs.iterations import FittedParts, part_length_us
from freshline.planning.costs.learned_queries import learned_query_costs
from freshline.sql.operators import Aggregate
from freshline.storage.control.history import History

# What is assumed of a query before it has ever run: Spark's jobs, and little for its rows.
_PROVISIONAL: Final = Cost(300_000, Fraction(1, 1_000))


def with_known_costs(warehouse: Warehouse, history: History) -> Warehouse:
    """What the plan counts with: declared, learned by answers in runs before or assumed, in this order."""
    learned = learned_query_costs(warehouse, history).warehouse
    queries = {name: with_some_cost(query) for name, query in learned.queries.items()}
    return replace(warehouse, queries=queries) if queries else warehouse


def with_some_cost(query: Query) -> Query:
    """Declared or assumed: where others are to be planned beside it."""
    return query if query.cost is not None else replace(query, cost=_PROVISIONAL)


class QueryMeasurer:
    """Measures queries without reading anything. The driver's thread alone asks it."""

    def __init__(self, rows: WindowRows) -> None:
        self._rows = rows

    def watch(self, query: Query) -> None:
        """The query will be measured."""
        for table in query.tables:
            self._rows.keep(table, query.window_us)

    def measure(self, task: QueryTask, now: int, shortest_us: int) -> QueryMeasure:
        """What its last window holds, and what an answer over that costs, in parts that are no longer than
        a quarter of the shortest deadline on its track, unless they would read next to nothing."""
        asked = running_query(task.asked)
        query = asked.prepared.query
        to = min((table.freshness for table in task.sources), default=now)
        rows = {table: self._rows.rows(table, to - query.window_us, to) for table in query.tables}
        sliced = sum(rows[side.table] for side in query.sides if side.in_slices)
        tuples = sum(rows[side.table] for side in query.sides)
        fitted = asked.costs.fitted
        if fitted is None:
            return asked.measure._replace(tuples=tuples)
        part_us = max(query.part_us or part_length_us(shortest_us, fitted.part_us), fitted.part_us)
        asked.costs.measured_part_us = part_us
        cost_us, fixed_us = fitted.cost_us(sliced, part_us)
        selectivity = _selectivity(query, asked.measure, fitted)
        return QueryMeasure(tuples, cost_us, fixed_us, selectivity, min(part_us, cost_us))


def _selectivity(query: Query, planned: QueryMeasure, fitted: FittedParts) -> Fraction:
    """Every tuple counts in an aggregate: its rows tell nothing."""
    is_told = query.selectivity is not None or isinstance(query.operators, Aggregate)
    return planned.selectivity if is_told else fitted.selectivity
