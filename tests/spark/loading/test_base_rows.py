"""A base table's rows: what its `select` gives, whichever way it is run, of the very files it names."""

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cases import rest_in_soak
from freshline.definitions.load import loads
from freshline.definitions.sections.feed_entry import DELIMITERS
from freshline.landing.record_reader import RecordReader
from freshline.spark.loading.frames import base_rows, read_files
from freshline.spark.loading.projection import plain_projection

PROJECT = """\
name: shop
pools: {updates: {tracks: 1}}
feeds:
  orders: {path: orders, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 10s}
tables:
  orders: {feed: orders, select: "%s"}
"""  # noqa: E501
RECORDS = """\
ts,item,price
2026-01-01T00:00:01Z,"tea, green",3
2026-01-01T00:00:02Z,cup,
2026-01-01T00:00:03Z,tea,40
"""
PLAIN = [
    "SELECT * FROM orders",
    "SELECT TS, Price FROM orders;",
    "SELECT * EXCEPT (item) FROM orders WHERE price > 3 OR price IS NULL",
    "SELECT ts, price + 1 AS price, price * 2 twice FROM `orders`",
    "SELECT ts + INTERVAL 1 HOUR AS ts, item FROM orders",
    "SELECT ts, price IS DISTINCT FROM 3 AS other FROM orders WHERE item IS DISTINCT FROM 'tea, green'",
    "SELECT ts, explode(split(item, ', ')) AS word, 'a, b FROM c' AS `x, y` FROM orders",
    "SELECT ts, CASE WHEN price > 5 THEN 'dear' ELSE item END AS item -- FROM here, and WHERE\\n"
    " FROM orders /* all, of them */ WHERE ts > '2026-01-01T00:00:01Z' -- not the first",
    "SELECT ts, price + 1 AS more, more + 1 AS most, named_struct('a', price, 'b', item).b AS b FROM orders",
    "SELECT ts, transform(array(price, 1), x -> x + 1)[0] AS x, extract(SECOND FROM ts) AS s FROM orders",
]
OTHER = [
    "SELECT o.ts FROM orders o",
    "SELECT orders.ts, orders.item AS item FROM orders",
    "SELECT ts, price + 1 FROM orders",
    "SELECT ALL ts FROM orders",
    "FROM orders SELECT ts",
    "SELECT ts FROM orders WHERE price > 1 |> WHERE price < 9",
    "SELECT ts FROM orders,",
    "SELECT DISTINCT ts FROM orders",
    "SELECT ts FROM orders ORDER BY ts",
    "SELECT ts, item::struct<a: int, b: int> AS item FROM orders",
    "SELECT ts, posexplode(split(item, ',')) AS (n, word) FROM orders",
    "SELECT ts, word FROM orders LATERAL VIEW explode(split(item, ',')) AS word",
    "SELECT ts FROM orders WHERE price IN (SELECT 3)",
    "WITH dear AS (SELECT * FROM orders) SELECT ts FROM dear",
    "SELECT ts FROM orders UNION ALL SELECT ts FROM orders",
]


@pytest.mark.parametrize("late", rest_in_soak(["ts <= timestamp '2026-01-01T00:00:02Z'", "false"]))
@pytest.mark.parametrize("select", PLAIN)
def test_a_plain_select_gives_what_spark_makes_of_it_as_sql(spark, tmp_path, select, late):
    warehouse = loads(PROJECT % select)
    (tmp_path / "1.csv").write_text(RECORDS, encoding="utf-8")
    table, feed = warehouse.tables["orders"], warehouse.feeds["orders"]
    files = read_files(spark, feed, [str(tmp_path / "1.csv")])
    assert plain_projection(table.select) is not None
    rows = base_rows(spark, table, feed, files, late)
    files.createOrReplaceTempView("orders")
    wanted = spark.sql(f"SELECT *, {late} AS _late FROM ({table.select.rstrip(';')}\n)")
    assert rows.schema == wanted.schema
    assert rows.collect() == wanted.collect() != []


@pytest.mark.parametrize("select", OTHER)
def test_any_other_select_is_left_to_spark(select):
    assert plain_projection(select) is None


def test_a_select_with_a_name_for_its_feed_is_run_as_sql(spark, tmp_path):
    warehouse = loads(PROJECT % "SELECT o.ts, upper(o.item) AS item FROM orders o WHERE o.price = 40;")
    (tmp_path / "1.csv").write_text(RECORDS, encoding="utf-8")
    table, feed = warehouse.tables["orders"], warehouse.feeds["orders"]
    rows = base_rows(spark, table, feed, read_files(spark, feed, [str(tmp_path / "1.csv")]), "false")
    assert [(row.item, row._late) for row in rows.collect()] == [("TEA", False)]


ODD = [
    *("a[12]", "b{x,y}", "c*", "d?", "e\\1", "f g%20h", "2026-11-17T03:00:00", "[:]", "back\\slash:colon"),
    *("{}", "per%cent", " spaces  ", "ünï中😀", "new\nline", "new\nline?:", "#1", "a=b", "\x1b[31m"),
]
# What the odd names would be, were they patterns.
OTHERS = ["a1", "bx", "cc", "dd", "e1", "f g h"]


def write(path: Path, item: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        path.write_text(f"ts,item,price\n2026-01-01T00:00:01Z,x,{item}\n", encoding="utf-8")
    elif path.suffix == ".json":
        path.write_text(f'{{"ts": "2026-01-01T00:00:01Z", "item": "x", "price": {item}}}\n', encoding="utf-8")
    else:
        record = {"ts": datetime(2026, 1, 1, tzinfo=UTC), "item": "x", "price": item}
        pq.write_table(pa.Table.from_pylist([record]), path)


@pytest.mark.parametrize("form", rest_in_soak(["csv", "json", "parquet"]))
def test_files_are_read_by_their_very_names_and_once(spark, tmp_path: Path, form):
    feed = loads(PROJECT.replace("format: csv", f"format: {form}") % "SELECT * FROM orders").feeds["orders"]
    paths = [tmp_path / "plain" / f"{name}.{form}" for name in ["1", *ODD]]
    paths += [tmp_path / odd / f"{name}.{form}" for odd in ODD for name in ("1", "a:b")]
    for number, path in enumerate(paths):
        write(path, number)
    for other in OTHERS:
        write(tmp_path / "plain" / f"{other}.{form}", -1)
        write(tmp_path / other / f"1.{form}", -1)
    rows = read_files(spark, feed, [str(path) for path in paths]).collect()
    assert sorted(row.price for row in rows) == list(range(len(paths)))


def test_a_key_that_a_json_record_does_not_have_is_a_null(spark, tmp_path: Path):
    (tmp_path / "1.json").write_text('{"ts": "2026-01-01T00:00:01Z", "price": 3}\n', encoding="utf-8")
    project = PROJECT.replace("format: csv", "format: json") % "SELECT * FROM orders"
    (row,) = read_files(spark, loads(project).feeds["orders"], [str(tmp_path / "1.json")]).collect()
    assert (row.item, row.price) == (None, 3)


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_values_are_divided_at_the_delimiter_unless_they_are_quoted(spark, tmp_path: Path, delimiter):
    """The rows that Spark loads, and as many as discovery has counted."""
    given = PROJECT.replace("format: csv", f"format: csv, delimiter: {json.dumps(delimiter)}")
    feed = loads(given % "SELECT * FROM orders").feeds["orders"]
    items = ["tea", "tea, green", f"one{delimiter}two", 'a "cup"', " ", "x;y|z"]
    path = tmp_path / "1.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(["ts", "item", "price"])
        writer.writerows([f"2026-01-01T00:00:0{n}Z", item, n] for n, item in enumerate(items))
    rows = read_files(spark, feed, [str(path)]).collect()
    assert [(row.item, row.price) for row in rows] == [(item, n) for n, item in enumerate(items)]
    found = RecordReader(feed.landing).read(path)
    assert (found.count, found.newest_us) == (len(items), 1_767_225_605_000_000)
