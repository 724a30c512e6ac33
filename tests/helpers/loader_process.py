"""A program that loads files 1 to N into a table until all are loaded, for tests that kill it.

Every other thing that a runner does to a table is done too: compaction, checkpoints, clean-up, vacuum.
"""

from __future__ import annotations

import sys
import uuid
from datetime import timedelta
from pathlib import Path

from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.ledger import Ledger
from freshline.storage.delta.stored_table import StoredTable
from stored_tables import file, job, opened


def load(storage: Path, count: int) -> None:
    """Loads what the ledger does not have; begins anew whenever another writer was quicker."""
    while True:
        table = opened(storage / "t")
        ledger = Ledger(storage / "ledger.sqlite")
        try:
            ledger.catch_up("t", table)
            print("ready", flush=True)
            load_missing(table, ledger, count)
            return
        except TableTaken:
            continue
        finally:
            ledger.close()


def load_missing(table: StoredTable, ledger: Ledger, count: int) -> None:
    for number in range(1, count + 1):
        if ledger.find("t", f"{number}.csv") is None:
            folder = job(table, uuid.uuid4().hex, [number])
            version = table.commit(folder, max(number, table.freshness or 0), [file(f"{number}.csv")], {})
            ledger.record("t", version, [file(f"{number}.csv")])
            if number % 10 == 0:
                table.compact(1 << 20, 1 << 20)
            if number % 25 == 0:
                ledger.catch_up("t", table)
                table.clean_log(ledger.applied("t"))
                table.vacuum(timedelta(hours=1))


if __name__ == "__main__":
    print("up", flush=True)
    sys.stdin.readline()  # so that two can begin together
    load(Path(sys.argv[1]), int(sys.argv[2]))
