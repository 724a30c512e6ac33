"""Definitions that were changed between two runs: never are old and new rows mixed unsaid."""

from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.storage.delta.commits import Commits
from freshline.storage.delta.log import commit_information
from freshline.storage.delta.stored_table import StoredTable
from shop import ITEMS, PROJECT, SUMS, Shop, at

MAXIMA = "SELECT ts, item, max(price) AS price FROM orders GROUP BY ts, item"
SPACED = (
    "select ts,  item, SUM(price) as price -- all of it\\n from orders /* of the day */ group by ts, item;"
)


@pytest.fixture
def shop(tmp_path: Path, spark) -> Shop:  # type: ignore[no-untyped-def]
    """Two orders of second 1 were loaded."""
    shop = Shop(tmp_path, spark)
    shop.orders(1, 3, 4)
    assert shop.run() == ()
    return shop


def prices(shop: Shop, table: str = "revenue") -> list[object]:
    return [row["price"] for row in shop.rows(table)]


def versions(shop: Shop) -> list[int]:
    return [shop.stored(table).version() for table in ("orders", "revenue", "items")]


def define(shop: Shop, *edits: tuple[str, str], revenue: str = SUMS) -> None:
    text = PROJECT.format(revenue=revenue, items=ITEMS)
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    shop.warehouse = loads(text)


def test_changed_tables_are_refused_together_and_stay_as_they_were(shop):
    before = versions(shop)
    doubled = ("{feed: orders,", "{feed: orders, select: 'SELECT ts, item, price * 2 AS price FROM orders',")
    define(shop, doubled, ("FROM revenue", "FROM revenue WHERE price > 5"), revenue=MAXIMA)
    shop.orders(2, 10)
    with pytest.raises(InputError) as refused:
        shop.run()
    lines = str(refused.value).splitlines()
    assert len(lines) == 3
    for line, table, was, now in (
        (lines[0], "orders", "not given", '"SELECT ts, item, price * 2 AS price FROM orders"'),
        (lines[1], "revenue", f'"{SUMS}"', f'"{MAXIMA}"'),
        (lines[2], "items", f'"{ITEMS}"', f'"{ITEMS} WHERE price > 5"'),
    ):
        key = "select" if table == "orders" else "sql"
        assert (
            f"table {table} has changed since its rows were computed: `{key}` was {was}, and is {now}" in line
        )
        assert f"'freshline run --accept-change {table}'" in line
        assert (f"'freshline rebuild {table}'" in line) == (table != "orders")
    assert "Restore its definition" in lines[0]
    assert versions(shop) == before


def test_spaces_comments_and_letters_of_keywords_are_no_change(shop):
    define(shop, revenue=SPACED)
    shop.orders(2, 10, 20)
    assert shop.run() == ()
    assert prices(shop) == [7, 30]


def test_the_timestamp_lookback_and_align_count_too(tmp_path, spark):
    twice = (ITEMS, "SELECT ts, ts AS other, price FROM revenue")
    shop = Shop(tmp_path, spark)
    define(shop, twice)
    shop.orders(1, 3)
    shop.run()
    for edit in ("lookback: 1s", "align: 1s", "timestamp: other"):
        define(shop, twice, ('revenue", period', f'revenue", {edit}, period'))
        key = edit.partition(":")[0]
        with pytest.raises(InputError, match=f"items has changed since its rows were computed: `{key}` was"):
            shop.run()


def test_an_accepted_change_counts_from_here_on_and_is_in_the_tables_history(shop):
    shop.define(MAXIMA)
    shop.orders(2, 10, 20)
    (said,) = shop.run("revenue")
    assert said.startswith(f"revenue continues from {at(1).isoformat()} with these changes: `sql` was ")
    assert said.endswith("Tables that read it keep what they had: items")
    assert (prices(shop), prices(shop, "items")) == ([7, 20], [7, 20])
    path = Path(shop.folder / "warehouse" / "tables" / "revenue")
    accepted = [
        information["computation"]
        for version in range(shop.stored("revenue").version() + 1)
        if "computation" in (information := commit_information(path, version))
    ]
    assert [change["how"] for change in accepted] == ["made", "accepted"]
    assert (accepted[1]["before"]["sql"], accepted[1]["now"]["sql"]) == (SUMS, MAXIMA)
    shop.orders(3, 1, 2)
    assert shop.run() == ()
    assert prices(shop) == [7, 20, 2]
    assert shop.run("items") == ("items has not changed since its rows were computed: nothing to accept",)
    shop.define(SUMS)
    with pytest.raises(InputError, match="table revenue has changed"):
        shop.run()


def test_nothing_is_accepted_while_another_change_is_refused(shop):
    before = versions(shop)
    shop.define(MAXIMA, f"{ITEMS} WHERE price > 5")
    with pytest.raises(InputError, match="table items has changed") as refused:
        shop.run("revenue")
    assert "revenue has changed" not in str(refused.value)
    assert versions(shop) == before
    with pytest.raises(InputError, match="table revenue has changed"):
        shop.run("items")


def test_a_rebuilt_table_goes_on_and_the_old_definition_is_the_changed_one(shop):
    shop.define(MAXIMA)
    assert shop.rebuild("revenue") == 1
    shop.orders(2, 10, 20)
    assert shop.run() == ()
    assert prices(shop) == [4, 20]
    shop.define(SUMS)
    with pytest.raises(InputError, match="table revenue has changed"):
        shop.run()


def test_a_rebuild_that_was_killed_before_its_commit_changed_nothing(shop, monkeypatch):
    def killed(*arguments, **others):  # type: ignore[no-untyped-def]
        raise KeyboardInterrupt

    shop.define(MAXIMA)
    with monkeypatch.context() as patch:
        patch.setattr(Commits, "transact", killed)
        with pytest.raises(KeyboardInterrupt):
            shop.rebuild("revenue")
        with pytest.raises(KeyboardInterrupt):
            shop.run("revenue")
    with pytest.raises(InputError, match="table revenue has changed"):
        shop.run()
    shop.define(SUMS)
    shop.orders(2, 10, 20)
    assert shop.run() == ()
    assert prices(shop) == [7, 30]


def test_tables_without_a_record_take_what_is_defined_and_say_so(tmp_path, spark, monkeypatch):
    shop = Shop(tmp_path, spark)
    shop.orders(1, 3, 4)
    opened = StoredTable.open_or_create
    with monkeypatch.context() as patch:  # as it was before there were records
        patch.setattr(StoredTable, "open_or_create", lambda *arguments: opened(*arguments[:4]))
        patch.setattr(StoredTable, "record", lambda *arguments: None)
        shop.run()
    shop.define(MAXIMA)
    assert shop.run() == (
        "The tables orders, revenue, items had no record of how the rows were computed: "
        "the present definition counts as that record",
    )
    assert shop.run() == ()
    shop.define(SUMS)
    with pytest.raises(InputError, match="table revenue has changed"):
        shop.run()


def test_a_table_that_was_never_loaded_takes_any_change(tmp_path, spark):
    shop = Shop(tmp_path, spark)
    shop.run()
    shop.define(MAXIMA)
    assert shop.run() == ()
    shop.orders(1, 3, 4)
    shop.run()
    assert prices(shop) == [4]


def test_a_select_that_was_changed_is_accepted_from_here_on(shop):
    doubled = ("{feed: orders,", "{feed: orders, select: 'SELECT ts, item, price * 2 AS price FROM orders',")
    define(shop, doubled)
    with pytest.raises(InputError, match="table orders has changed"):
        shop.run()
    shop.orders(2, 10)
    (said,) = shop.run("orders")
    assert said.endswith("Tables that read it keep what they had: revenue")
    assert sorted(prices(shop, "orders")) == [3, 4, 20]
    assert shop.run() == ()


def test_an_unknown_table_is_said_before_anything_begins(tmp_path):
    warehouse = loads(PROJECT.format(revenue=SUMS, items=ITEMS))
    with pytest.raises(InputError, match="--accept-change reveneu: there is no table reveneu"):
        Runner(warehouse, tmp_path, tmp_path / "warehouse", RunOptions(accepted=["reveneu"]))
    assert not (tmp_path / "warehouse").exists()


def test_no_window_is_loaded_by_halves_when_a_table_gets_windows(tmp_path, spark):
    """The freshness of a table without windows is inside one of its new ones, and so is its reader's."""
    shop = Shop(tmp_path, spark)
    plain = "SELECT ts, sum(price) AS price FROM orders GROUP BY ts"
    define(shop, revenue=plain)
    for second in (2, 5, 11, 13):
        shop.orders(second, second)
    shop.run()
    assert (prices(shop), prices(shop, "items")) == ([2, 5, 11, 13], [2, 5, 11, 13])
    windows = "SELECT window.start AS ts, sum(price) AS price FROM orders GROUP BY window(ts, '10 seconds')"
    define(shop, ("seconds')\", period: 1s", "seconds')\", align: 10s, period: 10s"), revenue=windows)
    with pytest.raises(InputError, match="inside a window of its `align`"):
        shop.run("revenue")
    assert shop.rebuild("revenue") == 1
    assert shop.rebuild("items") == 1
    shop.orders(15, 15)
    shop.orders(25, 25)
    shop.run()
    assert (prices(shop), prices(shop, "items")) == ([7, 39], [7, 39])
