"""Measures queries from the records of runs: the rows of their windows and the costs of answers."""

from __future__ import annotations

from fractions import Fraction

from freshline.definitions.sections.queries import Query
from freshline.kernel.queries.query_spec import QueryMeasure
from freshline.kernel.queries.task import QueryTask
from freshline.live.queries.running_query import running_query
from freshline.live.queries.window_rows import WindowRows
from freshline.planning.costs.iterations import FittedParts, part_length_us
from freshline.sql.operators import Aggregate


class QueryMeasurer:
    """Measures queries without reading tables. Only the driver's thread uses it."""

    def __init__(self, rows: WindowRows) -> None:
        self._rows = rows

    def watch(self, query: Query) -> None:
        """Prepares to measure the query."""
        for table in query.tables:
            self._rows.keep(table, query.window_us)

    def measure(self, task: QueryTask, now: int, shortest_us: int) -> QueryMeasure:
        """The rows of its last window, and the cost of an answer over it.

        Parts take at most a quarter of the shortest deadline on its track, with a minimum.
        """
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
    """The share of rows that an answer has. In an aggregate every row counts."""
    is_told = query.selectivity is not None or isinstance(query.operators, Aggregate)
    return planned.selectivity if is_told else fitted.selectivity
