"""Before the first update Spark is warmed up with made-up rows, of which nothing is left."""

import logging
from pathlib import Path

import pytest

from freshline.definitions.load import load
from freshline.spark.frames import schemas
from freshline.spark.warm_up import warm_up

PROJECT = """
name: shop
storage: warehouse
pools: {updates: {tracks: 2, policy: edf}}
feeds:
  orders: {path: orders, format: csv, schema: "ts TIMESTAMP, item STRING, price INT, day DATE", timestamp: ts,
           period: 1m}
  clicks: {path: clicks, format: json, schema: "ts TIMESTAMP, tags ARRAY<STRING>, ok BOOLEAN", timestamp: ts,
           period: 1m}
  visits: {path: visits, format: parquet, schema: "ts TIMESTAMP, share DECIMAL(9, 2)", timestamp: ts,
           period: 1m}
tables:
  orders: {feed: orders}
  halves: {feed: orders, select: "SELECT ts, price / WRONG AS half FROM orders"}
  clicks: {feed: clicks, select: "SELECT ts, ok FROM clicks"}
  visits: {feed: visits}
  sales: {sources: [orders], sql: "SELECT ts, item, price FROM orders WHERE price > 10", period: 1m}
"""


@pytest.mark.parametrize(("divisor", "failed"), [("2", []), ("(price - price)", ["halves"])])
def test_every_table_is_updated_with_made_up_rows_as_far_as_it_can_be(
    spark, tmp_path: Path, caplog: pytest.LogCaptureFixture, divisor: str, failed: list[str]
) -> None:
    file = tmp_path / "freshline.yml"
    file.write_text(PROJECT.replace("WRONG", divisor), encoding="utf-8")
    warehouse = load(file)
    caplog.set_level(logging.DEBUG, "freshline.spark.warm_up")
    warm_up(spark, warehouse, schemas(spark, warehouse), tmp_path / "warm", tracks=2)
    said = [
        record.getMessage().split(":")[1].strip()
        for record in caplog.records
        if record.name == "freshline.spark.warm_up"
    ]
    assert sorted(set(said)) == failed
    assert [path.name for path in tmp_path.iterdir()] == ["freshline.yml"]
