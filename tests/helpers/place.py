"""A project in a folder of its own, its files, and what became of them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from freshline.definitions.load import loads
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.live.status.status import WarehouseStatus
from freshline.storage.control.quarantine import Quarantine, QuarantinedFile
from patience import PATIENCE_US

PROJECT = """\
name: trouble
pools: {updates: {tracks: 2}}
feeds:
  orders: {path: landing/orders, format: json, schema: "ts timestamp, n long", timestamp: ts, period: 500ms}
  clicks: {path: landing/clicks, format: json, schema: "ts timestamp, n long", timestamp: ts, period: 500ms}
tables:
  orders: {feed: orders, cost: {startup: 5s}}
  clicks: {feed: clicks, cost: {startup: 5s}}
  sums: {sql: "SELECT ts, sum(n) AS n FROM orders GROUP BY ts", period: 500ms, cost: {startup: 5s}}
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


class Place:
    """A project folder, and what its runner said of itself."""

    def __init__(self, folder: Path, spark) -> None:
        self.folder = folder
        self.spark = spark
        self.project = PROJECT
        self.said: list[WarehouseStatus] = []
        self.runner: Runner

    def land(self, feed: str, number: int) -> Path:
        """A file of one record."""
        path = self.folder / "landing" / feed / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        row = {"ts": (START + timedelta(seconds=number)).isoformat(), "n": number}
        hidden = path.with_name(f".{path.name}")
        hidden.write_text(json.dumps(row) + "\n", encoding="utf-8")
        return hidden.replace(path)

    def land_bad(self, feed: str, number: int) -> None:
        """A file whose record has a timestamp, and a number that is none."""
        path = self.land(feed, number)
        text = path.read_text(encoding="utf-8").replace(f'"n": {number}', '"n": "many"')
        path.write_text(text, encoding="utf-8")

    def run(self, until=None, ends="nothing is left to load", **options) -> None:
        """Until it ends for that reason, or until that holds of a status."""

        def hear(status: WarehouseStatus) -> None:
            self.said.append(status)
            if until is not None and until(status):
                self.runner.stop("seen")

        self.said = []
        with self.new_runner(drain=until is None, **options) as self.runner:
            self.runner.on_status = hear
            self.runner.run(PATIENCE_US)
        expected = "seen" if until else ends
        assert self.runner.stopped_because == expected, self.said[-1]

    def new_runner(self, drain: bool, **options) -> Runner:
        storage = self.folder / "warehouse"
        return Runner(
            loads(self.project), self.folder, storage, RunOptions(session=self.spark, drain=drain, **options)
        )

    def states(self, table: str) -> set[str]:
        """What the last runner said of a table."""
        return {row.state for status in self.said for row in status.tables if row.name == table}

    def numbers(self, table: str) -> list[int]:
        found = DeltaTable(self.folder / "warehouse" / "tables" / table).to_pyarrow_table(columns=["n"])
        return sorted(found["n"].to_pylist())

    def quarantine(self) -> list[QuarantinedFile]:
        return Quarantine(self.folder / "warehouse" / "_freshline" / "quarantine").entries()

    def journal(self) -> list[dict[str, Any]]:
        """What the last runner's kernel was told, and what it said; the header first."""
        log = self.folder / "warehouse" / "_freshline" / "logs" / f"{self.runner.run_id}.jsonl"
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
