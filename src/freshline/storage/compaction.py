"""Many small files of a table made into one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from freshline.storage.files import LiveFile

# Fewer are not worth a commit: merging every new file with what is there would write the same rows again
# and again.
FEWEST: Final = 8
# Rows are handed on in groups of about so many bytes in memory.
_GROUP_BYTES: Final = 64 << 20


def choose(files: Sequence[LiveFile], small_bytes: int, target_bytes: int) -> list[LiveFile]:
    """The files to merge next, oldest first; none if there are too few small ones of like size.

    Files are merged with those within a factor of eight of their own size, so that a row is rewritten once
    for each factor of eight on its file's way up to `small_bytes`, not once for each update of the table.
    """
    likes: dict[int, list[LiveFile]] = {}
    for file in files:
        if file.size < small_bytes:
            likes.setdefault(file.size.bit_length() // 3, []).append(file)
    if not likes:
        return []
    alike = max(likes.values(), key=len)
    alike.sort(key=lambda file: (file.oldest is not None, file.oldest, file.path))
    chosen: list[LiveFile] = []
    total = 0
    for file in alike:
        if len(chosen) >= FEWEST and total + file.size > target_bytes:
            break
        chosen.append(file)
        total += file.size
    return chosen if len(chosen) >= FEWEST else []


def merge(table: Path, files: Sequence[LiveFile], schema: pa.Schema, target: Path) -> None:
    """Writes the rows of the files, in the files' order, into one."""
    # Arrow's bounds leave NaN out, which readers count as the largest number: better none than wrong ones.
    exact = [field.name for field in schema if not pa.types.is_floating(field.type)]
    target.parent.mkdir(parents=True)
    with pq.ParquetWriter(target, schema, write_statistics=exact) as writer:
        waiting: list[pa.Table] = []
        for file in files:
            rows = pq.read_table(table / file.path, partitioning=None, use_threads=False)
            for field in schema:
                if field.name not in rows.column_names:  # the table got it later
                    rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
            waiting.append(rows.select(schema.names).cast(schema))
            if sum(part.nbytes for part in waiting) >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
