"""The commits of a stored table as its Delta log has them: when each was made, and of which rows."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshline.base.arrow_instants import in_microseconds
from freshline.sql.columns import LATE_COLUMN
from freshline.storage.delta import log


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that added rows. Instants are µs since the Unix epoch."""

    at: int
    rows: tuple[int, ...]  # the timestamps of its rows that were not late
    recovery: bool

    @property
    def age_us(self) -> int:
        """The age of its oldest row when it was committed."""
        return self.at - min(self.rows)


def commits_of(table: Path) -> list[Commit]:
    """The commits with rows, in order. Those that only rewrite files are left out."""
    found = []
    for path in sorted((table / "_delta_log").glob("*.json")):
        added: list[dict[str, Any]] = []
        information: dict[str, Any] = {}
        for line in path.read_text(encoding="utf-8").splitlines():
            ((kind, action),) = json.loads(line).items()
            if kind == "add" and action.get("dataChange", True):
                added.append(action)
            elif kind == "commitInfo":
                information = action
        at = log.committed_at(information)
        rows = [instant for action in added for instant in _instants(table / unquote(action["path"]))]
        if rows and at is not None:
            found.append(Commit(at, tuple(rows), bool(information.get(log.KEY, {}).get("recovery"))))
    return found


def _instants(file: Path) -> list[int]:
    rows = pq.read_table(file, partitioning=None)
    if LATE_COLUMN in rows.column_names:
        rows = rows.filter(pc.invert(rows[LATE_COLUMN]))
    found: list[int] = in_microseconds(rows["ts"]).to_pylist()
    return found
