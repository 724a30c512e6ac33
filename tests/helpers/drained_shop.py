"""A shop whose files are loaded by runs that drain."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from freshline.definitions.load import load
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from patience import PATIENCE_US

PROJECT = """\
name: shop
pools:
  updates: {tracks: 2}
feeds:
  orders: {path: landing/orders, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 10s}
  clicks: {path: landing/clicks, format: json, schema: "ts timestamp, item string", timestamp: ts, period: 10s}
tables:
  orders: {feed: orders, cost: {startup: 5s}}
  clicks: {feed: clicks, cost: {startup: 5s}}
  revenue: {sql: "SELECT ts, item, sum(price) AS price FROM orders GROUP BY ts, item", period: 10s, cost: {startup: 5s}}
  both:
    sql: "SELECT greatest(o.ts, c.ts) AS ts, o.item, o.price FROM orders o JOIN clicks c ON o.item = c.item AND o.ts = c.ts"
    period: 10s
    cost: {startup: 5s}
"""  # noqa: E501

START = datetime(2026, 1, 1, tzinfo=UTC)


class Shop:
    """A project folder whose files are written by hand."""

    def __init__(self, folder: Path, spark, text: str = PROJECT) -> None:
        self.folder = folder
        self.spark = spark
        self.file = folder / "freshline.yml"
        self.file.write_text(text, encoding="utf-8")
        for feed in ("orders", "clicks"):
            (folder / "landing" / feed).mkdir(parents=True)

    def at(self, second: float) -> datetime:
        return START + timedelta(seconds=second)

    def orders(self, name: str, rows: list[tuple[float, str, int]]) -> None:
        lines = [f"{self.at(second).isoformat()},{item},{price}" for second, item, price in rows]
        text = "\n".join(["ts,item,price", *lines, ""])
        (self.folder / "landing" / "orders" / name).write_text(text, encoding="utf-8")

    def clicks(self, name: str, rows: list[tuple[float, str]]) -> None:
        lines = [json.dumps({"ts": self.at(second).isoformat(), "item": item}) for second, item in rows]
        (self.folder / "landing" / "clicks" / name).write_text("\n".join([*lines, ""]), encoding="utf-8")

    def runner(self, **options) -> Runner:
        return Runner(load(self.file), self.folder, self.storage, RunOptions(session=self.spark, **options))

    def drain(self, **options) -> Runner:
        with self.runner(drain=True, **options) as runner:
            runner.run(PATIENCE_US)
        assert runner.stopped_because == "nothing is left to load"
        return runner

    @property
    def storage(self) -> Path:
        return self.folder / "warehouse"

    def rows(self, table: str, columns: str) -> list[tuple]:
        """Read by DuckDB through a plain Delta reader."""
        dataset = DeltaTable(str(self.storage / "tables" / table)).to_pyarrow_dataset()
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("t", dataset)
        answer = connection.sql(f"SELECT {columns} FROM t ORDER BY ALL").to_arrow_table()
        return [tuple(row.values()) for row in answer.to_pylist()]


LONG_PERIODS = """\
name: long
pools: {updates: {tracks: 2, policy: %s}}
feeds:
  orders: {path: landing/orders, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 1s}
tables:
  orders: {feed: orders}
  revenue: {sql: "SELECT ts, sum(price) AS price FROM orders GROUP BY ts", period: 1h}
  report: {sql: "SELECT ts, price FROM revenue", period: 1d}
"""  # noqa: E501


def long_periods(folder: Path, spark, policy: str) -> Shop:
    shop = Shop(folder, spark, LONG_PERIODS % policy)
    for number in range(1, 6):
        shop.orders(f"{number}.csv", [(number, "tea", number)])
    return shop
