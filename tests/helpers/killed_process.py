"""A program that has a writer killed at every line of the code that commits, and then another one go on.

Writers are forked from a process in which delta-rs has not begun: it does not survive a fork.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Final

from freshline.storage.delta import checkpoint, commits, log
from freshline.storage.delta import log_window as window
from freshline.storage.delta import stored_table as delta
from freshline.storage.delta.ledger import Ledger
from loader_process import load
from stored_tables import file, instants, job, opened, update

KILLED_IN: Final = frozenset(str(module.__file__) for module in (checkpoint, commits, log, window))
COUNT: Final = 9


def prepare(storage: Path) -> None:
    """Four updates, the last without a checkpoint."""
    delta.COMMITS_WITHOUT_CHECKPOINT = 3  # type: ignore[misc]
    table, ledger = opened(storage / "t"), Ledger(storage / "ledger.sqlite")
    ledger.catch_up("t", table)
    for number in range(1, 5):
        ledger.record("t", update(table, number), [file(f"{number}.csv")])
    ledger.close()


def go_on(storage: Path) -> None:
    """Opens the table, commits, checkpoints, merges, cleans and vacuums it."""
    delta.COMMITS_WITHOUT_CHECKPOINT = 3  # type: ignore[misc]
    table, ledger = opened(storage / "t"), Ledger(storage / "ledger.sqlite")
    ledger.catch_up("t", table)
    for number in range(5, COUNT + 1):
        folder = job(table, f"went-on-{number}", [number])
        version = table.commit(folder, number, [file(f"{number}.csv")], {})
        ledger.record("t", version, [file(f"{number}.csv")])
    table.compact(1 << 20, 1 << 20)
    table.clean_log(ledger.applied("t"))
    table.vacuum(timedelta(hours=1))


def check(storage: Path) -> None:
    """Another writer loads what is missing, and everything is there once."""
    load(storage, COUNT)
    table = opened(storage / "t")
    assert instants(storage / "t") == list(range(1, COUNT + 1))
    assert (table.sequence, table.freshness) == (COUNT, COUNT)
    consumed = [file.name for _, files in table.consumed_since(-1) for file in files]
    assert sorted(consumed) == [f"{number}.csv" for number in range(1, COUNT + 1)]
    windows = list((storage / "t/_freshline/window").iterdir())
    assert all(found.name.startswith(f"{os.getpid()}-") for found in windows), "the dead one's is gone"


def killed_at(line: int, work: Callable[[Path], None]) -> Callable[[Path], None]:
    """The work, up to so many lines of the code that commits."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in KILLED_IN:
            return None
        lines += event == "line"
        if lines == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    def traced(storage: Path) -> None:
        sys.settrace(trace)
        work(storage)

    return traced


def forked(work: Callable[[Path], None], storage: Path) -> int:
    """How a process ended that did this: its exit code, or the signal with a minus."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            work(storage)
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(folder: Path, first: int, step: int) -> None:
    storage, copy = folder / "storage", folder / "copy"
    storage.mkdir()
    assert forked(prepare, storage) == 0
    line = first
    while True:
        shutil.copytree(storage, copy)
        ended = forked(killed_at(line, go_on), copy)
        assert ended in (0, -signal.SIGKILL), f"at line {line}"
        assert forked(check, copy) == 0, f"after it was killed at line {line}"
        shutil.rmtree(copy)
        if ended == 0:
            print("lines", line)
            return
        line += step


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
