"""Checkpoints that do not grow with the files that a table has replaced.

A checkpoint lists every file that was replaced within the retention time, for `vacuum`. 30,000 such files of
a day make the table open in 12 ms instead of 2. A vacuum uses a file's modification time if the log does not
list it. So the time of the replacement is set there instead.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def slim(table: Path, checkpoint: Path, version: int) -> str:
    """Takes replaced files out of a table's new checkpoint; returns the hint that names the checkpoint."""
    content = pq.ParquetFile(checkpoint).read(use_threads=False)
    if content["remove"].null_count < content.num_rows:
        # A file whose time could not be set stays listed, so it is never vacuumed too early.
        replaced = [
            action is not None and _is_noted(table, action) for action in content["remove"].to_pylist()
        ]
        content = content.filter(pc.invert(pa.array(replaced)))
        draft = checkpoint.with_name(f".{checkpoint.name}.draft")
        pq.write_table(content, draft)
        draft.replace(checkpoint)
    added = content.num_rows - content["add"].null_count
    size = checkpoint.stat().st_size
    return json.dumps(
        {"version": version, "size": content.num_rows, "sizeInBytes": size, "numOfAddFiles": added}
    )


def _is_noted(table: Path, remove: dict[str, Any]) -> bool:
    """Sets a file's modification time to at least the time of its replacement; False if that fails."""
    then_ms, name = remove.get("deletionTimestamp"), unquote(remove["path"])
    if then_ms is None or "://" in name:
        return False
    path = table / name
    try:
        status = path.stat()
        if status.st_mtime_ns < then_ms * 1_000_000:
            os.utime(path, ns=(status.st_atime_ns, then_ms * 1_000_000))
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
