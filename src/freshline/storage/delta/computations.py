"""The record of the computations of a table's rows, in the table's folder.

Each line is one computation with a number. The table's commits carry the number of the current computation.
So a line whose commit was lost in a crash is ignored. Lines are never removed: once the log is cleaned, they
are the only history of the changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from freshline.base.clock import clock
from freshline.definitions.computation import Computation

# When a computation took effect: from the first row, adopted from the definition where no record existed,
# from some row on, by a rebuild, or with additional columns.
How = Literal["made", "adopted", "accepted", "rebuilt", "migrated"]


def find(table: Path, number: int) -> Computation | None:
    """The computation with that number; None if the file has lost it."""
    return next(
        (Computation.from_record(line["computation"]) for line in _lines(table) if line["number"] == number),
        None,
    )


def add(table: Path, computation: Computation, how: How, present: int | None) -> int:
    """Appends a computation; returns its number, which is new even if the present one's line was lost."""
    number: int = 1 + max([present or 0, *(line["number"] for line in _lines(table))])
    line = {
        "number": number,
        "how": how,
        "at_us": clock(),
        "computation": asdict(computation),
    }
    text = json.dumps(line, separators=(",", ":"), ensure_ascii=False)
    file = _file(table)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("ab") as lines:
        # A crash may have cut the line before short: it must not spoil this one.
        lines.write(f"\n{text}\n".encode())
    return number


def told(before: Computation | None, now: Computation, how: How) -> dict[str, Any]:
    """A change as a commit records it, for readers of the table's history."""
    return {
        "computation": {
            "how": how,
            "before": None if before is None else asdict(before),
            "now": asdict(now),
        }
    }


def _file(table: Path) -> Path:
    return table / "_freshline" / "computations.jsonl"


def _lines(table: Path) -> Iterator[dict[str, Any]]:
    """All complete lines."""
    try:
        texts = _file(table).read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for text in texts:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and {"number", "computation"} <= line.keys():
            yield line
