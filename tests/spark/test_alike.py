"""Updates that Spark does by the same code are warmed up once."""

from freshline.definitions.load import loads
from freshline.spark.alike import alike
from freshline.spark.frames import schemas

PROJECT = """
name: shop
pools: {updates: {tracks: 2}}
feeds:
  orders: {path: o, format: csv, schema: "ts timestamp, item string, price int", timestamp: ts, period: 1m}
  returns: {path: r, format: csv, schema: "at timestamp, what string, paid int", timestamp: at, period: 1h}
  clicks: {path: c, format: json, schema: "ts timestamp, item string, price int", timestamp: ts, period: 1m}
  latin: {path: l, format: csv, encoding: latin1, schema: "ts timestamp, item string, price int",
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
  dearer: {feed: returns, select: "select AT, what from returns where (PAID > 99)"}
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
        ("dear",),
        ("dearer",),
        ("cheap",),
        ("sold", "back"),
        ("most",),
        ("deep",),
    ]
