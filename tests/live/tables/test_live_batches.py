"""Backlogs on Spark: several files a job, each once, and none that holds the others up."""

import json
from pathlib import Path

import pytest

from freshline.kernel.assembly.replay import kernel_to_replay, replay
from place import Place

# A track for each table: a batch may be as long as the table's period.
PROJECT = """\
name: backlog
pools: {updates: {tracks: 2}}
feeds:
  orders: {path: landing/orders, format: json, schema: "ts timestamp, n long", timestamp: ts, period: 1h}
  clicks: {path: landing/clicks, format: json, schema: "ts timestamp, n long", timestamp: ts, period: 1h}
tables:
  orders: {feed: orders, cost: {startup: 5s}}
  clicks: {feed: clicks, cost: {startup: 5s}}
"""
FILES = 40


@pytest.fixture
def place(tmp_path: Path, spark) -> Place:
    place = Place(tmp_path, spark)
    place.project = PROJECT
    (tmp_path / "landing" / "clicks").mkdir(parents=True)
    return place


def calls(place: Place) -> tuple[dict, list[dict]]:
    (log,) = (place.folder / "warehouse/_freshline/logs").iterdir()
    header, *rest = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return header, rest


def test_a_backlog_is_loaded_in_batches_each_file_once_and_the_log_replays(place):
    for number in range(1, FILES + 1):
        place.land("orders", number)
    place.run(until=lambda status: status.tables[0].loaded_rows == FILES)
    assert place.numbers("orders") == list(range(1, FILES + 1))
    header, journal = calls(place)
    started = [job["files"] for call in journal for job in call.get("instructions", ())]
    assert [len(files) for files in started[:5]] == [1, 2, 4, 8, 16]
    assert sum(map(len, started)) == FILES
    arrived = [event for call in journal for event in call.get("events", ()) if "arrived" in event]
    assert [event["rows"] for event in arrived] == [1] * FILES
    assert replay(kernel_to_replay(header, "log"), journal) == (len(journal), None)


@pytest.mark.soak
def test_of_a_batch_with_a_bad_file_only_that_one_is_put_aside(place):
    for number in range(1, 13):
        if number == 6:
            place.land_bad("orders", number)
        else:
            place.land("orders", number)
    place.run(until=lambda status: status.tables[0].loaded_rows == 11 and status.quarantined == 1)
    assert place.numbers("orders") == [number for number in range(1, 13) if number != 6]
    assert [entry.name for entry in place.quarantine()] == ["6.json"]
