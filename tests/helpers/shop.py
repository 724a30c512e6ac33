"""A shop whose orders are loaded by real runs, and whose definition can be changed between them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from deltalake import DeltaTable

from freshline.definitions.load import loads
from freshline.live.maintain.migrate import MigrationResult, migrate
from freshline.live.maintain.rebuild import rebuild
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from patience import PATIENCE_US

START = datetime(2026, 1, 1, tzinfo=UTC)
PROJECT = """\
name: shop
pools: {{updates: {{tracks: 1}}}}
feeds:
  orders: {{path: orders, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 1s}}
  refunds: {{path: refunds, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 1s}}
tables:
  orders: {{feed: orders, cost: {{startup: 1ms}}}}
  refunds: {{feed: refunds, cost: {{startup: 1ms}}}}
  revenue: {{sql: "{revenue}", period: 1s, cost: {{startup: 1ms}}}}
  items: {{sql: "{items}", period: 1s, cost: {{startup: 1ms}}}}
"""  # noqa: E501
SUMS = "SELECT ts, item, sum(price) AS price FROM orders GROUP BY ts, item"
MEANS = "SELECT ts, avg(price) AS price, count(*) AS orders FROM orders GROUP BY ts, item"
ITEMS = "SELECT ts, price FROM revenue"


class Shop:
    """A project whose tables are loaded by real runs."""

    def __init__(self, folder: Path, spark) -> None:  # type: ignore[no-untyped-def]
        self.folder, self.spark = folder, spark
        for feed in ("orders", "refunds"):
            (folder / feed).mkdir()
        self.define()

    def define(self, revenue: str = SUMS, items: str = ITEMS) -> None:
        self.warehouse = loads(PROJECT.format(revenue=revenue, items=items))

    def orders(self, second: int, *prices: int) -> None:
        lines = [f"{at(second).isoformat()},tea,{price}" for price in prices]
        text = "\n".join(["ts,item,price", *lines, ""])
        (self.folder / "orders" / f"{second}.csv").write_text(text, encoding="utf-8")

    def run(self, *accepted: str) -> Sequence[str]:
        """Loads what there is; what was said of the tables."""
        storage = self.folder / "warehouse"
        with Runner(
            self.warehouse,
            self.folder,
            storage,
            RunOptions(session=self.spark, drain=True, accepted=accepted),
        ) as runner:
            runner.run(PATIENCE_US)
        assert runner.stopped_because == "nothing is left to load"
        return runner.said

    def rebuild(self, table: str) -> int:
        return rebuild(self.spark, self.warehouse, self.folder / "warehouse", table)

    def migrate(self, table: str) -> MigrationResult:
        return migrate(self.spark, self.warehouse, self.folder / "warehouse", table)

    def stored(self, table: str) -> DeltaTable:
        return DeltaTable(self.folder / "warehouse" / "tables" / table)

    def rows(self, table: str) -> list[dict[str, object]]:
        return sorted(self.stored(table).to_pyarrow_table().to_pylist(), key=lambda row: row["ts"])


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)
