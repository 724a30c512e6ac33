"""Tables that are computed whole: why, up to how many rows their targets hold, and what they keep on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Final

from freshline.definitions.sections.readable import rows_a_second
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.make import tables_that_hold
from freshline.planning.plan.plan import Plan, WholePlan

_ROWS_MAX: Final = 10**12  # more rows than a table has


def with_whole_tables(plan: Plan) -> Plan:
    """The plan with its tables that are computed whole; each costs some dozens of plans."""
    declared = plan.declared or plan.warehouse
    whole = [table for table in declared.tables.values() if table.is_whole]
    if not whole:
        return plan
    rates = rows_a_second({name: declared.stored[name] for name in declared.stored_order}, declared.feeds)
    holding = frozenset(table.name for table in plan.tables if table.holds)
    return replace(plan, whole=tuple(_planned(plan, declared, table, holding, rates) for table in whole))


def _planned(
    plan: Plan,
    declared: Warehouse,
    table: Table,
    holding: frozenset[str],
    rates: dict[str, Fraction | None],
) -> WholePlan:
    cost = table.cost
    read = [rates.get(source) for source in table.sources]
    known = [rate for rate in read if rate is not None]
    return WholePlan(
        name=table.name,
        because=table.full_because,
        rows=0 if cost is None else cost.rows,
        rows_most=_rows_most(plan, declared, table, holding | {table.name}),
        rows_a_second=sum(known, Fraction(0)) if len(known) == len(read) else None,
        versions_kept=table.history_us // table.period_us,
        pool_helps=_pool_helps(plan, declared, table, holding),
    )


def _rows_most(plan: Plan, declared: Warehouse, table: Table, must_hold: frozenset[str]) -> int | None:
    cost = table.cost
    if cost is None or not cost.per_row_us:
        return None

    def holds(rows: int) -> bool:
        tables = {**declared.tables, table.name: replace(table, cost=cost.sized(rows))}
        return must_hold <= tables_that_hold(replace(declared, tables=tables), plan.placed)

    return _largest(holds)


def _largest(holds: Callable[[int], bool]) -> int | None:
    """The largest number for which it holds; None if that is beyond all bounds, 0 if it never holds."""
    high = 1
    while holds(high):
        if high >= _ROWS_MAX:
            return None
        high *= 8
    low = high // 8
    while low + 1 < high:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _pool_helps(plan: Plan, declared: Warehouse, table: Table, holding: frozenset[str]) -> tuple[str, ...]:
    """The tables of its pool that hold once it has a pool of its own, with one track."""
    pool = declared.pools[table.pool]
    beside = {
        other.name
        for other in declared.tables.values()
        if other.pool == pool.name and other.name != table.name and other.name not in holding
    }
    if not beside:
        return ()
    own = replace(pool, name=f"{pool.name} of {table.name}", tracks=1)
    moved = replace(
        declared,
        pools={**declared.pools, own.name: own},
        tables={**declared.tables, table.name: replace(table, pool=own.name)},
    )
    return tuple(sorted(beside & tables_that_hold(moved, plan.placed)))
