"""A(V) with lateness and with windows."""

from dataclasses import replace

from freshline.base.duration import SECOND
from freshline.definitions.sections.feeds import Landing
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.bounds import longest_update_us
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder


def bounds(warehouse: Warehouse) -> dict[str, float | None]:
    return {
        table.name: None if table.staleness_bound_us is None else table.staleness_bound_us / SECOND
        for table in make_plan(warehouse).tables
    }


def test_lateness_counts_like_timestamp_jitter_but_makes_no_update_longer():
    warehouse = Builder().files("v", period=10, phase=4, jitter=3, timestamp_jitter=2).build()
    feed = replace(warehouse.feeds["v"], landing=Landing(lateness_us=7 * SECOND))
    # Θ + p + max(φ + J, p + J + κ + lateness) = 10 + 10 + max(4 + 3, 10 + 3 + 2 + 7)
    assert bounds(replace(warehouse, feeds={"v": feed})) == {"v": 42}
    assert longest_update_us(warehouse.tables["v"], feed) == 15 * SECOND


def test_lateness_does_not_count_where_the_wait_for_the_first_file_is_longer():
    warehouse = Builder().files("v", period=10, phase=30, jitter=3, timestamp_jitter=2).build()
    feed = replace(warehouse.feeds["v"], landing=Landing(lateness_us=7 * SECOND))
    # Θ + p + max(φ + J, p + J + κ + lateness) = 10 + 10 + max(30 + 3, 10 + 3 + 2 + 7)
    assert bounds(replace(warehouse, feeds={"v": feed})) == {"v": 53}


def test_a_table_of_windows_is_staler_by_one_of_them_and_so_is_what_reads_it():
    builder = (
        Builder(tracks=4)
        .continuous("a", period=10)
        .files("b", period=10)
        .derived("c", ["a"], period=20)
        .derived("d", ["c", "b"], period=30)
    )
    warehouse = builder.build()
    aligned = {
        **warehouse.tables,
        "c": replace(warehouse.tables["c"], align_us=15 * SECOND),
        "d": replace(warehouse.tables["d"], align_us=SECOND),
    }
    # c: 20 + 20 + 20 + 15; d: 30 + 30 + max(75, 30) + 1
    assert bounds(replace(warehouse, tables=aligned)) == {"a": 20, "b": 30, "c": 75, "d": 136}


def test_an_update_loads_whole_windows():
    warehouse = Builder().continuous("a", period=10).derived("c", ["a"], period=20).build()
    table = warehouse.tables["c"]
    lengths = [
        longest_update_us(replace(table, align_us=seconds * SECOND), None) for seconds in (20, 10, 7, 15)
    ]
    assert lengths == [20 * SECOND, 20 * SECOND, 21 * SECOND, 30 * SECOND]
