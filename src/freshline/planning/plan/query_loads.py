"""The demand of continuous queries on their pool, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.pools import Pool
from freshline.definitions.sections.queries import Query
from freshline.definitions.sections.readable import rows_a_second
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.analysis.operators import SELECTIVITY_LEAST, operator_cost
from freshline.planning.costs.bounds import worst_case_us

# A part is this many times as long as its fixed cost, or that would take most of the time.
_PART_OF_FIXED: Final = 3
# The share of the shortest deadline that may be spent waiting for the running part.
_PART_OF_DEADLINE: Final = 4


def query_loads(warehouse: Warehouse, pool: Pool) -> list[QueryLoad]:
    """The queries of a pool as the analysis sees them. Raises InputError if a cost is unknown."""
    queries = [query for query in warehouse.queries.values() if query.pool == pool.name]
    if not queries:
        return []
    stored = warehouse.stored
    tables = {name: stored[name] for name in warehouse.stored_order}
    rows = rows_a_second(tables, warehouse.feeds)
    for query in queries:
        _check_known(query, rows, warehouse)
    tuples = {
        window_us: _tuples_in(window_us, tables, warehouse.feeds)
        for window_us in {query.window_us for query in queries}
    }
    loads = [_load(query, tuples[query.window_us]) for query in queries]
    return [
        load._replace(part_us=_part_us(query, load, loads, pool))
        for query, load in zip(queries, loads, strict=True)
    ]


def _check_known(query: Query, rows: Mapping[str, Fraction | None], warehouse: Warehouse) -> None:
    missing = [table for table in query.tables if rows[table] is None]
    if query.cost is not None or not missing:
        return
    feeds = " and ".join(f"`{feed.name}`" for feed in _silent_feeds(missing, warehouse))
    raise InputError(
        f"no cost is known for the query {query.name}: the rows of {', '.join(missing)} are unknown",
        f"Add `rows` (a second) to the feed {feeds}, or declare `cost: {{startup: 50ms, rate: 0.1}}` of the "
        "query",
        query.place,
    )


def _silent_feeds(tables: Sequence[str], warehouse: Warehouse) -> list[Feed]:
    """The feeds upstream of tables that do not declare how many rows they bring."""
    found: dict[str, Feed] = {}
    seen = set(tables)
    ahead, stored = list(tables), warehouse.stored
    while ahead:
        table = stored[ahead.pop()]
        if table.feed is not None and warehouse.feeds[table.feed].rows is None:
            found[table.feed] = warehouse.feeds[table.feed]
        ahead += [source for source in table.sources if source not in seen]
        seen.update(table.sources)
    return list(found.values())


def _tuples_in(
    window_us: int, tables: Mapping[str, StoredDefinition], feeds: Mapping[str, Feed]
) -> dict[str, int]:
    """By table, sources first: the rows of a window; one a second for a feed that declares none."""
    tuples: dict[str, int] = {}
    for name, table in tables.items():
        if table.feed is None:
            tuples[name] = sum(tuples[source] for source in table.sources)
        else:
            tuples[name] = ceil((feeds[table.feed].rows_loaded or Fraction(1)) * window_us / SECOND)
    return tuples


def _load(query: Query, tuples: Mapping[str, int]) -> QueryLoad:
    assert query.operators is not None, f"nothing says what {query.name} is made of"
    known = operator_cost(query.operators, tuples)
    cost_us, fixed_us = known.cost_us, known.fixed_us
    if query.cost is not None:
        cost_us = worst_case_us(query.cost, query.window_us)
        fixed_us = min(cost_us, worst_case_us(query.cost, 0)) if query.cost.startup_us else 0
    selectivity = known.selectivity if query.selectivity is None else query.selectivity
    return QueryLoad(
        name=query.name,
        period_us=query.stride_us,
        deadline_us=query.deadline_us,
        cost_us=cost_us,
        fixed_us=fixed_us,
        least_us=max(1, ceil(fixed_us + (cost_us - fixed_us) * query.keep_least)),
        part_us=0,
        weight=query.weight,
        selectivity=max(SELECTIVITY_LEAST, selectivity),
        tuples=known.tuples,
    )


def _part_us(query: Query, load: QueryLoad, loads: Sequence[QueryLoad], pool: Pool) -> int:
    """How long it cannot be paused."""
    if not pool.preempts:
        return load.cost_us
    if query.part_us is not None:
        return query.part_us
    shortest_us = min(each.deadline_us for each in loads)
    # The full cost is one part: no query waits longer than that.
    return min(load.cost_us, max(shortest_us // _PART_OF_DEADLINE, _PART_OF_FIXED * load.fixed_us))
