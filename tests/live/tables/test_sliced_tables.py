"""Tables that get slices when they have rows already, get others, or lose them."""

from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.spark.answering.query import query
from freshline.sql.slices import NO_SLICE
from shop import PROJECT, Shop, at

REVENUE = "SELECT ts, item, sum(price) AS price FROM orders GROUP BY ts, item"
ITEMS = "SELECT * FROM orders"


def define(shop: Shop, orders: str | None, revenue: str | None = None) -> None:
    text = PROJECT.format(revenue=REVENUE, items=ITEMS)
    if orders is not None:
        text = text.replace("{feed: orders,", f"{{feed: orders, slices: {orders},")
    if revenue is not None:
        text = text.replace(f'"{REVENUE}",', f'"{REVENUE}", slices: {revenue},')
    shop.warehouse = loads(text)


@pytest.fixture
def shop(tmp_path: Path, spark) -> Shop:  # type: ignore[no-untyped-def]
    """Orders of two seconds were loaded, a late one among them, into tables without slices."""
    shop = Shop(tmp_path, spark)
    define(shop, None)
    shop.orders(2, 1, 2, 3)
    shop.run()
    shop.orders(1, 4)
    shop.run()
    return shop


def without_slices(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    return sorted(tuple(value for key, value in row.items() if key != "_slice") for row in rows)


def slices(shop: Shop, table: str) -> set[object]:
    return {row.get("_slice") for row in shop.rows(table)}


def test_a_base_table_gets_slices_others_and_none_by_what_the_refusal_says(shop: Shop, spark) -> None:
    before, dealt_by_chance = shop.rows("orders"), set()
    for orders, what in [
        ("{}", "column _slice is missing"),
        ("{by: item}", "`slices` was by chance, and is by item"),
        ("{by: item, outliers: price}", "`slices` was by item, and is by item, outliers by price"),
        (None, "column _slice is not defined"),
    ]:
        define(shop, orders)
        for accepted in ((), ("orders",)):
            with pytest.raises(InputError) as refused:
                shop.run(*accepted)
            assert what in str(refused.value)
            assert "'freshline migrate orders'" in str(refused.value)
            assert "accept-change" not in str(refused.value)
        migrated = shop.migrate("orders")
        assert (migrated.is_dealt, migrated.added, migrated.changed, migrated.to_rebuild) == (
            True,
            (),
            (),
            (),
        )
        assert without_slices(shop.rows("orders")) == without_slices(before)
        found = slices(shop, "orders")
        if orders == "{}":
            dealt_by_chance = found
        elif orders is None:
            assert found == {None}
        else:
            assert len(found - {NO_SLICE}) == 1, "there is one item"
            assert found != dealt_by_chance
            largest = {row["price"] for row in shop.rows("orders") if row["_slice"] == NO_SLICE}
            assert largest <= {4}
        shop.run()
        assert not shop.migrate("orders").is_dealt
    assert shop.stored("orders").schema().to_arrow().names == ["ts", "item", "price", "_late"]


def test_a_sliced_table_goes_on_and_its_readers_do_not_see_slices(shop: Shop, spark) -> None:
    define(shop, "{by: item}")
    shop.migrate("orders")
    shop.orders(3, 5, 6)
    shop.run()
    assert len(shop.rows("orders")) == 6
    assert len(slices(shop, "orders")) == 1
    assert {row["price"] for row in shop.rows("revenue")} == {6, 11}
    assert shop.stored("items").schema().to_arrow().names == ["ts", "item", "price"]
    storage = shop.folder / "warehouse"
    assert query(spark, shop.warehouse, storage, "SELECT * FROM orders").columns == [
        "ts",
        "item",
        "price",
        "_late",
    ]
    asked = query(spark, shop.warehouse, storage, "SELECT count(*) FROM orders WHERE _slice >= 0").collect()
    assert asked[0][0] == 6


def test_a_derived_table_gets_and_loses_slices_by_rebuilding_it(shop: Shop) -> None:
    before = shop.rows("revenue")
    for revenue, what in [("{by: item}", "is missing"), ("{}", "was by item"), (None, "is not defined")]:
        define(shop, None, revenue)
        with pytest.raises(InputError, match=what) as refused:
            shop.run("revenue")
        assert "'freshline rebuild revenue'" in str(refused.value)
        shop.rebuild("revenue")
        shop.run()
        found = without_slices(shop.rows("revenue"))
        assert found[-1] == without_slices(before)[-1]
        assert found[0][0] == at(1), "the late record came in"
        assert (None in slices(shop, "revenue")) == (revenue is None)


def test_new_columns_and_slices_come_together(shop: Shop) -> None:
    define(shop, "{}")
    text = PROJECT.format(revenue=REVENUE, items="SELECT ts, item FROM orders")
    text = text.replace("{feed: orders,", "{feed: orders, slices: {},")
    shop.warehouse = loads(text.replace("price long", "price long, qty int", 1))
    migrated = shop.migrate("orders")
    assert (migrated.is_dealt, migrated.added) == (True, ("qty",))
    rows = shop.rows("orders")
    assert {row["qty"] for row in rows} == {None}
    assert None not in {row["_slice"] for row in rows}
    assert sorted(row["price"] for row in rows) == [1, 2, 3, 4]
