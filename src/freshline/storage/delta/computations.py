"""The record of what a table's rows were computed by, in the table's folder.

Each line is one computation with a number, and the table's commits carry the number of the one that counts.
So a line that was written before a crash, and whose commit never came, says nothing. Lines are never removed:
after the log's cleaning they are all that is left of what changed when.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from freshline.base.clock import clock
from freshline.definitions.computation import Computation

# How a table came to be computed so: from the first row on, by taking what was defined when nothing was
# recorded, from some row on, made anew, or with columns more.
How = Literal["made", "adopted", "accepted", "rebuilt", "migrated"]


def find(table: Path, number: int) -> Computation | None:
    """The computation with that number; None where the file has lost it."""
    return next(
        (Computation.from_record(line["computation"]) for line in _lines(table) if line["number"] == number),
        None,
    )


def add(table: Path, computation: Computation, how: How, present: int | None) -> int:
    """Writes a computation down; its number, which none had before, nor the present one if that was lost."""
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
        # The line before may have been cut short by a crash: it must not spoil this one.
        lines.write(f"\n{text}\n".encode())
    return number


def told(before: Computation | None, now: Computation, how: How) -> dict[str, Any]:
    """A change in a commit's words, for readers of the table's history."""
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
    """All lines that are whole."""
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
