"""A feed that has got another column: its tables take it over, and rows are never made up for it."""

from pathlib import Path

import pytest
from deltalake import write_deltalake

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.live.maintain import migrate
from freshline.spark.answering.query import query
from freshline.storage.delta.log import commit_information
from shop import PROJECT, SUMS, Shop, at

ITEMS = "SELECT * FROM orders"
NEW = ('"ts timestamp, item string, price long"', '"ts timestamp, qty int, item string, price long"')


def define(shop: Shop, *edits: tuple[str, str], revenue: str = SUMS, items: str = ITEMS) -> None:
    text = PROJECT.format(revenue=revenue, items=items)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    shop.warehouse = loads(text)


def ordered(shop: Shop, second: int, columns: str, values: str) -> None:
    text = f"ts,{columns}\n{at(second).isoformat()},{values}\n"
    (shop.folder / "orders" / f"{second}.csv").write_text(text, encoding="utf-8")


def select(text: str) -> tuple[str, str]:
    return "{feed: orders,", f"{{feed: orders, select: '{text}',"


@pytest.fixture
def shop(tmp_path: Path, spark) -> Shop:  # type: ignore[no-untyped-def]
    """An order of second 1 was loaded, without `qty`."""
    shop = Shop(tmp_path, spark)
    define(shop)
    ordered(shop, 1, "item,price", "tea,3")
    shop.run()
    return shop


def test_a_new_column_is_null_in_old_rows_and_readers_by_star_are_to_be_rebuilt(shop, spark):
    more = ("tables:\n", "tables:\n  all: {sql: SELECT * FROM items, period: 1s, cost: {startup: 1ms}}\n")
    define(shop, more)
    shop.run()
    define(shop, NEW, more)
    with pytest.raises(InputError) as refused:
        shop.run()
    assert "column qty is missing. Add the missing columns with 'freshline migrate orders'" in str(
        refused.value
    )
    assert "Rebuild it with 'freshline rebuild items'" in str(refused.value)
    with pytest.raises(InputError, match="its source orders differs from its definition") as early:
        shop.rebuild("items")
    assert "'freshline migrate orders'" in early.value.remedy
    before = shop.stored("orders")
    migrated = shop.migrate("orders")
    assert (migrated.added, migrated.changed, migrated.to_rebuild) == (("qty",), (), ("items", "all"))
    after = shop.stored("orders")
    assert (after.version(), after.file_uris()) == (before.version() + 1, before.file_uris())
    assert shop.migrate("orders").added == ()
    assert shop.migrate("refunds").added == ("qty",)
    with pytest.raises(InputError) as refused:
        shop.run()
    assert "column qty is missing. Rebuild it with 'freshline rebuild items'" in str(refused.value)
    assert "orders at" not in str(refused.value)
    assert (shop.rebuild("items"), shop.rebuild("all")) == (1, 1)
    ordered(shop, 2, "qty,item,price", "5,tea,4")
    assert shop.run() == ()
    for table in ("orders", "items", "all"):
        assert [(row["qty"], row["price"]) for row in shop.rows(table)] == [(None, 3), (5, 4)]
    assert [row["price"] for row in shop.rows("revenue")] == [3, 4]
    answer = query(spark, shop.warehouse, shop.folder / "warehouse", "SELECT sum(qty), count(*) FROM orders")
    assert [tuple(row) for row in answer.collect()] == [(5, 2)]


def test_a_dropped_column_is_refused_and_the_way_out_leads_on(shop):
    gone = ('"ts timestamp, item string, price long"', '"ts timestamp, item string"')
    define(shop, gone, revenue="SELECT ts, item, 0L AS price FROM orders", items="SELECT ts FROM orders")
    for refuses in (shop.run, lambda: shop.migrate("orders")):
        with pytest.raises(InputError, match="column price is not defined") as refused:
            refuses()
        assert "with CAST(NULL AS long) AS price" in str(refused.value)
        assert "'freshline run --accept-change orders'" in str(refused.value)
    define(shop, gone, select("SELECT *, CAST(NULL AS long) AS price FROM orders"))
    (shop.folder / "refunds").rmdir()
    (shop.folder / "warehouse" / "tables" / "refunds").rename(shop.folder / "aside")
    (shop.folder / "refunds").mkdir()
    ordered(shop, 2, "item", "tea")
    shop.run("orders")
    assert [row["price"] for row in shop.rows("items")] == [3, None]


def test_a_retyped_column_is_refused_and_the_way_out_leads_on(shop):
    retyped = ('"ts timestamp, item string, price long"', '"ts timestamp, item string, price double"')
    define(shop, retyped)
    for refuses in (shop.run, lambda: shop.migrate("orders")):
        with pytest.raises(InputError, match="column price is long, not double") as refused:
            refuses()
        assert "with CAST(price AS long) AS price" in str(refused.value)
    define(shop, retyped, select("SELECT * EXCEPT (price), CAST(price AS long) AS price FROM orders"))
    (shop.folder / "warehouse" / "tables" / "refunds").rename(shop.folder / "aside")
    ordered(shop, 2, "item,price", "tea,4.0")
    shop.run("orders")
    assert [row["price"] for row in shop.rows("items")] == [3, 4]


def test_a_select_that_only_has_the_column_more_is_taken_over_with_it(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    define(shop, select("SELECT ts, price FROM orders"), revenue="SELECT ts, price FROM orders")
    ordered(shop, 1, "item,price", "tea,3")
    shop.run()
    define(shop, select("SELECT ts, price, item FROM orders"), revenue="SELECT ts, price FROM orders")
    assert shop.migrate("orders").changed == ()
    information = commit_information(shop.folder / "warehouse" / "tables" / "orders", 2)
    assert (information["migrated"], information["computation"]["how"]) == (["item"], "migrated")
    shop.rebuild("items")
    ordered(shop, 2, "item,price", "tea,4")
    assert shop.run() == ()
    assert [(row["item"], row["price"]) for row in shop.rows("items")] == [(None, 3), ("tea", 4)]
    # What else has changed is asked about by the next run.
    define(shop, select("SELECT ts, price + 1 AS price, item, 7 AS n FROM orders"), revenue=SUMS)
    (changed,) = shop.migrate("orders").changed
    assert changed.startswith('`select` was "SELECT ts, price, item FROM orders", and is ')
    with pytest.raises(InputError, match="table orders has changed"):
        shop.run()


def test_what_cannot_be_migrated_is_said(shop, monkeypatch):
    for table, what in (("revenue", "revenue is a derived table"), ("order", "there is no table order")):
        with pytest.raises(InputError, match=what):
            shop.migrate(table)
    define(shop, ("tables:\n", "tables:\n  copies: {feed: orders, cost: {startup: 1ms}}\n"))
    with pytest.raises(InputError, match="there are no rows of copies yet"):
        shop.migrate("copies")
    define(shop, ("item string, price", "item string, local timestamp_ntz, price"))
    with pytest.raises(InputError, match="made without timestamp_ntz"):
        shop.migrate("orders")

    def add_columns(*arguments):  # type: ignore[no-untyped-def]
        write_deltalake(shop.stored("orders"), shop.stored("orders").to_pyarrow_table(), mode="append")
        return real(*arguments)

    real = migrate.add_columns
    monkeypatch.setattr(migrate, "add_columns", add_columns)
    define(shop, NEW)
    with pytest.raises(InputError, match="Migrate it again"):
        shop.migrate("orders")
    assert [row["price"] for row in shop.rows("orders")] == [3, 3]
