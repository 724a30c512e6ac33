"""Merges many small files of a table into one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.slices import SLICES
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.sliced_files import ARROW_OPTIONS, group_rows, in_order, is_sliced

# Fewer files are not worth a commit: the same rows would be written again and again.
FEWEST: Final = 8
# The size of a batch of rows in memory, in bytes.
_GROUP_BYTES: Final = 64 << 20


def choose(files: Sequence[LiveFile], small_bytes: int, target_bytes: int) -> list[LiveFile]:
    """The files to merge next, oldest first; none if too few small files have a similar size.

    Files are merged with others within a factor of eight of their size. So a row is rewritten once for each
    factor of eight on its way up to `small_bytes`, not once for each update of the table.
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
    # Arrow's bounds ignore NaN, which readers count as the largest number: such bounds would be wrong.
    exact = [field.name for field in schema if not pa.types.is_floating(field.type)]
    options = ARROW_OPTIONS if is_sliced(schema) else {}
    target.parent.mkdir(parents=True)
    with pq.ParquetWriter(target, schema, write_statistics=exact, **options) as writer:
        if is_sliced(schema):
            _merge_slices(table, files, schema, writer)
            return
        waiting: list[pa.Table] = []
        for file in files:
            waiting.append(_as_defined(_read(table / file.path), schema))
            if sum(part.nbytes for part in waiting) >= _GROUP_BYTES:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


def _merge_slices(
    table: Path, files: Sequence[LiveFile], schema: pa.Schema, writer: pq.ParquetWriter
) -> None:
    """The rows of all files by slice, with as many slices at a time as fit into memory.

    Each round reads the files again, except for row groups without these slices.
    """
    uncompressed = sum(_uncompressed_bytes(table / file.path) for file in files)
    passes = min(SLICES, max(1, -(-uncompressed // _GROUP_BYTES)))
    edges = [SLICES * number // passes for number in range(passes + 1)]
    for first, end in pairwise(edges):
        wanted = None
        if passes > 1:
            wanted = ds.field(SLICE_COLUMN) < end
            # The first round includes rows that are in no slice, such as those of another writer.
            wanted = wanted & (ds.field(SLICE_COLUMN) >= first) if first else _or_null(wanted)
        parts = [_as_defined(_read(table / file.path, wanted), schema) for file in files]
        rows = in_order(pa.concat_tables(parts))
        if rows.num_rows:
            writer.write_table(rows, row_group_size=group_rows(rows))


def _or_null(wanted: pc.Expression) -> pc.Expression:
    return wanted | ds.field(SLICE_COLUMN).is_null()


def _read(path: Path, wanted: pc.Expression | None = None) -> pa.Table:
    return pq.read_table(path, partitioning=None, use_threads=False, filters=wanted)


def _uncompressed_bytes(path: Path) -> int:
    metadata = pq.read_metadata(path)
    return sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))


def _as_defined(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in rows.column_names:  # the table got it later
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)
