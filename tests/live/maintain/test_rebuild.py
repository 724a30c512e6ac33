"""A derived table made anew: by the SQL that is defined now, whatever it was."""

from pathlib import Path

import pytest
from deltalake import write_deltalake

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.spark.loading import frames
from shop import ITEMS, MEANS, PROJECT, Shop, at


@pytest.fixture
def shop(tmp_path: Path, spark) -> Shop:  # type: ignore[no-untyped-def]
    """Two orders of second 1 were loaded, and nothing of refunds."""
    shop = Shop(tmp_path, spark)
    shop.orders(1, 3, 4)
    shop.run()
    return shop


def test_a_table_with_other_sql_is_rebuilt_with_its_new_columns_and_goes_on(shop):
    assert shop.rows("revenue") == [{"ts": at(1), "item": "tea", "price": 7}]
    version = shop.stored("revenue").version()
    shop.define(MEANS)
    with pytest.raises(InputError, match="'freshline rebuild revenue'"):
        shop.run()
    assert shop.rebuild("revenue") == 1
    assert shop.stored("revenue").version() == version + 1
    assert shop.rows("revenue") == [{"ts": at(1), "price": 3.5, "orders": 2}]
    # `items` reads a column that has another type now.
    with pytest.raises(InputError, match="column price is long, not double"):
        shop.run()
    assert shop.rebuild("items") == 1
    shop.orders(2, 10)
    shop.run()
    assert [(row["ts"], row["price"], row["orders"]) for row in shop.rows("revenue")] == [
        (at(1), 3.5, 2),
        (at(2), 10.0, 1),
    ]
    assert [row["price"] for row in shop.rows("items")] == [3.5, 10.0]


def test_sql_that_makes_no_table_leaves_the_old_one_as_it_was(shop):
    versions = [shop.stored(table).version() for table in ("revenue", "items")]
    for revenue, items, what in [
        ("SELECT ts AS at, item, price FROM orders", ITEMS, "Spark refuses table items"),
        ("SELECT ts, item, NULL AS price FROM orders", ITEMS, "Delta cannot hold void"),
        ("SELECT ts, item FROM orders", ITEMS, "Spark refuses table items"),
        ("SELECT ts, TIMESTAMP_NTZ '2026-01-01' AS price FROM orders", ITEMS, "made without timestamp_ntz"),
    ]:
        shop.define(revenue, items)
        with pytest.raises(InputError, match=what):
            shop.rebuild("revenue")
    assert [shop.stored(table).version() for table in ("revenue", "items")] == versions
    assert [row["price"] for row in shop.rows("revenue")] == [7]


def test_a_source_that_is_not_as_it_is_defined_is_to_be_rebuilt_first(shop):
    shop.define(MEANS, "SELECT ts, orders FROM revenue")
    with pytest.raises(InputError, match="its source revenue differs from its definition") as refused:
        shop.rebuild("items")
    assert refused.value.remedy == "Rebuild it with 'freshline rebuild revenue'"
    assert [row["price"] for row in shop.rows("items")] == [7]


def test_a_source_without_rows_adds_none(shop):
    shop.define("SELECT ts, item, price FROM orders UNION ALL SELECT ts, item, -price FROM refunds")
    assert shop.rebuild("revenue") == 2
    assert sorted(row["price"] for row in shop.rows("revenue")) == [3, 4]


def test_a_rebuild_gives_way_to_what_another_writer_does_meanwhile(shop, monkeypatch):
    def derived_rows(*arguments):  # type: ignore[no-untyped-def]
        write_deltalake(shop.stored("revenue"), shop.stored("revenue").to_pyarrow_table(), mode="append")
        return frames.derived_rows(*arguments)

    monkeypatch.setattr("freshline.live.maintain.rebuild.derived_rows", derived_rows)
    with pytest.raises(InputError, match="Rebuild it again"):
        shop.rebuild("revenue")
    assert [row["price"] for row in shop.rows("revenue")] == [7, 7]


def test_nothing_is_rebuilt_of_a_table_that_was_never_loaded(tmp_path, spark):
    with pytest.raises(InputError, match="nothing was ever loaded into revenue"):
        Shop(tmp_path, spark).rebuild("revenue")


def test_a_timestamp_with_a_dot_in_its_name_is_loaded_derived_and_rebuilt(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    text = PROJECT.partition("  refunds: {{path")[0] + (
        "tables:\n"
        "  orders: {{feed: orders, cost: {{startup: 1ms}}}}\n"
        '  revenue: {{sql: "SELECT `event.ts`, price FROM orders", period: 1s, cost: {{startup: 1ms}}}}\n'
    )
    text = text.replace("ts timestamp", "`event.ts` timestamp").replace(
        "timestamp: ts", "timestamp: event.ts"
    )
    shop.warehouse = loads(text.format())
    for second, price in ((1, "3"), (2, "many"), (3, "4"), (0, "5")):
        line = f"event.ts,item,price\n{at(second).isoformat()},tea,{price}\n"
        (tmp_path / "orders" / f"{second}.csv").write_text(line, encoding="utf-8")
        shop.run()
    for table, prices in (("orders", {3, 4, 5}), ("revenue", {3, 4})):
        assert {row["price"] for row in shop.stored(table).to_pyarrow_table().to_pylist()} == prices
    assert shop.rebuild("revenue") == 3
