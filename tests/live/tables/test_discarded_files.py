"""Runs that leave files and rows out, as they are told to: and nothing else."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from freshline.kernel.assembly.replay import kernel_to_replay, replay
from freshline.storage.delta.ledger import Ledger
from place import START, Place

PROJECT = """\
name: plant
pools: {main: {tracks: 1, policy: rds-quota}}
classes: {operators: {error: 0.3}}
feeds:
  orders: {path: landing/orders, format: json, schema: "ts timestamp, sensor string, n long", timestamp: ts,
           period: 500ms}
  cars: {path: landing/cars, format: json, schema: "ts timestamp, sensor string, n long", timestamp: ts,
         period: 500ms, shed: {most: 2, per: 1 hour, value: "n % 10"}}
tables:
  all: {feed: orders, cost: {startup: 100ms}}
  few: {feed: orders, cost: {startup: 100ms}, discard: {key: sensor, value: n}}
  sums: {sql: "SELECT ts, sum(n) AS n FROM few GROUP BY ts", period: 500ms, cost: {startup: 100ms}}
  cars: {feed: cars, cost: {startup: 100ms}}
"""


@pytest.fixture
def place(tmp_path: Path, spark) -> Place:
    place = Place(tmp_path, spark)
    place.project = PROJECT
    return place


def land(place: Place, feed: str, number: int, *values: int) -> None:
    path = place.folder / "landing" / feed / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    at = START + timedelta(seconds=number)
    rows = [{"ts": at.isoformat(), "sensor": f"s{place}", "n": value} for place, value in enumerate(values)]
    hidden = path.with_name(f".{path.name}")
    hidden.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    hidden.replace(path)


def test_files_and_rows_are_left_out_and_counted_and_the_log_replays(place: Place) -> None:
    for number, values in enumerate([(5, 6), (5, 6), (5, 7), (5, 7)], start=1):
        land(place, "orders", number, *values)
        land(place, "cars", number, *values)
    place.run()
    status = {row.name: row for row in place.said[-1].tables}
    assert place.numbers("all") == sorted([5, 6, 5, 6, 5, 7, 5, 7])
    assert place.numbers("few") == sorted([5, 6, 5, 7])
    assert place.numbers("sums") == [11, 12]
    assert place.numbers("cars") == [5, 6]
    assert {name: row.discarded_files for name, row in status.items()} == dict.fromkeys(status, 0) | {
        "few": 2
    }
    assert {name: row.shed_rows for name, row in status.items()} == dict.fromkeys(status, 0) | {"cars": 6}
    assert len({row.freshness_us for row in status.values()}) == 1
    header, *journal = place.journal()
    told = [event for line in journal for event in line.get("events", ()) if "discarded" in event]
    assert sum(event["cost"] for event in told) == 2 * 100_000
    assert replay(kernel_to_replay(header, "log"), journal) == (len(journal), None)
    # Another run knows what is stored, and the ledger what was consumed.
    land(place, "orders", 5, 5, 7)
    land(place, "orders", 6, 5, 8)
    place.run()
    assert place.numbers("few") == sorted([5, 6, 5, 7, 5, 8])
    ledger = Ledger(place.folder / "warehouse" / "_freshline" / "ledger.sqlite")
    found = {number: ledger.find("few", f"{number}.json") for number in range(1, 7)}
    ledger.close()
    assert [number for number, file in found.items() if file and file.discarded] == [2, 4, 5]
    versions = DeltaTable(place.folder / "warehouse" / "tables" / "few").history()
    assert sum("freshline" in version for version in versions) >= 1
