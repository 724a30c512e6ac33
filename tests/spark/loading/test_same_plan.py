"""Updates that Spark does by the same code are warmed up once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.definitions.load import loads
from freshline.spark.loading.same_plan import alike
from freshline.spark.loading.schemas import schemas

PROJECT = """
name: shop
pools: {updates: {tracks: 2}}
feeds:
  orders: {path: o, format: csv, schema: "ts timestamp, item string, price int", timestamp: ts, period: 1m}
  returns: {path: r, format: csv, schema: "at timestamp, what string, paid int", timestamp: at, period: 1h}
  clicks: {path: c, format: json, schema: "ts timestamp, item string, price int", timestamp: ts, period: 1m}
  latin: {path: l, format: csv, encoding: iso-8859-1, schema: "ts timestamp, item string, price int",
          timestamp: ts, period: 1m}
  long: {path: d, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 1m}
tables:
  orders: {feed: orders}
  copies: {feed: orders}
  returns: {feed: returns}
  clicks: {feed: clicks}
  latin: {feed: latin}
  long: {feed: long}
  dear: {feed: orders, select: "SELECT ts, item FROM orders WHERE price > 10"}
  dearer: {feed: returns, select: "select at, what from returns where PAID > 99"}
  cheap: {feed: orders, select: "SELECT ts, item FROM orders WHERE price < 10"}
  sold: {sql: "SELECT ts, item, sum(price) AS total FROM orders GROUP BY ts, item", period: 1m}
  back: {sql: "SELECT at, what, sum(paid) AS given FROM returns GROUP BY at, what", period: 1h}
  most: {sql: "SELECT ts, item, max(price) AS total FROM orders GROUP BY ts, item", period: 1m}
  deep: {sql: "SELECT ts, item, sum(price) AS total FROM long GROUP BY ts, item", period: 1m}
"""


def test_plans_that_differ_in_names_and_constants_alone_are_alike(spark) -> None:
    warehouse = loads(PROJECT)
    assert alike(warehouse, schemas(spark, warehouse)) == [
        ("orders", "copies", "returns"),
        ("clicks",),
        ("latin",),
        ("long",),
        ("dear", "dearer"),
        ("cheap",),
        ("sold", "back"),
        ("most",),
        ("deep",),
    ]


NAMES = st.lists(st.from_regex(r"\Ax[a-z]{1,6}\Z"), min_size=5, max_size=5, unique=True)


def renamed(number: int, names: list[str], limit: int, text: str, kind: str) -> tuple[str, str]:
    """A feed with these names, and a table of it."""
    ts, item, price, other, total = names
    feed = (
        f"  feed{number}: {{path: f{number}, format: csv, period: 1m, timestamp: {ts}, "
        f"schema: '{ts} timestamp, {item} string, {price} {kind}'}}"
    )
    select = (
        f"SELECT {ts}, concat({item}, '{text}') AS {other}, {price} + {limit} AS {total} FROM feed{number} "
        f"WHERE {price} > {limit}"
    )
    return feed, f'  table{number}: {{feed: feed{number}, select: "{select}"}}'


@settings(max_examples=15)
@given(
    names=st.tuples(NAMES, NAMES),
    limits=st.tuples(st.integers(0, 1_000), st.integers(0, 1_000)),
    texts=st.tuples(st.from_regex(r"\A[a-z]{0,5}\Z"), st.from_regex(r"\A[a-z]{0,5}\Z")),
    kind=st.sampled_from(["int", "long"]),
)
def test_names_and_constants_do_not_matter_and_types_do(spark, names, limits, texts, kind) -> None:
    parts = [
        renamed(0, names[0], limits[0], texts[0], "int"),
        renamed(1, names[1], limits[1], texts[1], kind),
    ]
    feeds, tables = zip(*parts, strict=True)
    warehouse = loads(
        "\n".join(["name: x", "pools: {updates: {tracks: 1}}", "feeds:", *feeds, "tables:", *tables, ""])
    )
    found = alike(warehouse, schemas(spark, warehouse))
    assert found == ([("table0", "table1")] if kind == "int" else [("table0",), ("table1",)])
