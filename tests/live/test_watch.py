"""Files are found in time, whatever other feeds deliver."""

import queue
import time
from pathlib import Path

from freshline.costs.history import History
from freshline.definitions.load import loads
from freshline.live.driver import Landed, clock
from freshline.live.keeper import Keeper
from freshline.live.watch import Watch
from freshline.live.worker import Books
from freshline.plan.make import make_plan
from freshline.storage.ledger import Ledger
from freshline.storage.quarantine import Quarantine

PROJECT = """\
name: watched
pools: {updates: {tracks: 2}}
feeds:
  flood: {path: flood, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 10s}
  trickle: {path: trickle, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 10s}
tables:
  a: {feed: flood, cost: {startup: 1s}}
  b: {feed: trickle, cost: {startup: 1s}}
"""
FILES = 40


def write(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.csv").write_text(f"ts,n\n2024-05-06T12:00:{number:02},1\n")


def test_a_backlog_does_not_keep_the_files_of_other_feeds_from_being_found(tmp_path: Path) -> None:
    warehouse = loads(PROJECT)
    landing = {name: tmp_path / name for name in warehouse.feeds}
    for number in range(FILES - 1, -1, -1):
        write(landing["flood"], number)
    write(landing["trickle"], 0)
    ledger, history = Ledger(tmp_path / "ledger.sqlite"), History(tmp_path / "history.sqlite")
    keeper = Keeper(warehouse, make_plan(warehouse), "run", clock(), print, lambda status: None)
    books = Books(warehouse, ledger, history, landing, tmp_path / "archive")
    watch = Watch(warehouse, landing, ledger, Quarantine(tmp_path / "quarantine"), keeper, books, None)
    found: queue.Queue[Landed] = queue.Queue()
    watch.start(found.put)
    try:
        landed = [found.get(timeout=30) for _ in range(FILES + 1)]
        write(landing["trickle"], 1)
        later = found.get(timeout=30)
        while not watch.is_quiet():
            time.sleep(0.05)
    finally:
        watch.stop()
        ledger.close()
        history.close()
    assert [(file.feed, file.file.name) for file in landed] == [
        ("trickle", "0.csv"),
        *(("flood", f"{number}.csv") for number in range(FILES)),  # all at once, by timestamp
    ]
    assert all(file.waited for file in landed)
    assert (later.feed, later.file.name, later.waited) == ("trickle", "1.csv", False)
    assert found.empty()
