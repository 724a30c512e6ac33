"""Updates of made-up rows, of as many tables as they can be made up for."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from cases import rest_in_soak
from freshline.definitions.load import loads
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.warm_up import WarmUp

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
  clicks: {feed: clicks, select: "SELECT ts, ok FROM clicks WHERE ok"}
  visits: {feed: visits}
  sales: {sources: [orders], sql: "SELECT ts, item, price FROM orders WHERE price > 10", period: 1m}
"""


@pytest.mark.parametrize(("divisor", "failed"), rest_in_soak([("(price - price)", ["halves"]), ("2", [])]))
def test_every_table_is_updated_with_made_up_rows_as_far_as_it_can_be(
    spark, tmp_path: Path, divisor: str, failed: list[str]
) -> None:
    warehouse = loads(PROJECT.replace("WRONG", divisor))
    warm_up = WarmUp(warehouse, schemas(spark, warehouse), tmp_path / "warm")
    found = []
    for name in warehouse.tables:
        try:
            warm_up.run(spark.newSession(), name)
        except PySparkException:
            found.append(name)
    assert found == failed


def test_what_tables_load_is_made_up_once(spark, tmp_path: Path) -> None:
    warehouse = loads(PROJECT.replace("WRONG", "2"))
    warm_up = WarmUp(warehouse, schemas(spark, warehouse), tmp_path)
    warm_up.run(spark, "orders")
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "feeds/orders").iterdir()}
    warm_up.run(spark, "halves")
    warm_up.run(spark, "sales")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "feeds/orders").iterdir()} == made
    assert sorted(path.name for path in tmp_path.iterdir()) == ["feeds", "tables"]


def test_who_is_told_to_stop_runs_nothing_more(spark, tmp_path: Path) -> None:
    warehouse = loads(PROJECT.replace("WRONG", "2"))
    warm_up = WarmUp(warehouse, schemas(spark, warehouse), tmp_path)
    asked = iter([True, False])
    warm_up.run(spark, "orders", lambda: next(asked))
    assert list(asked) == []
