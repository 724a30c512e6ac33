"""The layout of a sliced table's Parquet files: sorted by slice, in small row groups.

A reader of some slices skips the row groups without them, and most pages of the others.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from freshline.sql.columns import SLICE_COLUMN

GROUP_BYTES: Final = 4 << 20
_PAGE_BYTES: Final = 64 << 10

# The same for Spark's and Arrow's writer.
SPARK_OPTIONS: Final = {"parquet.block.size": str(GROUP_BYTES), "parquet.page.size": str(_PAGE_BYTES)}
ARROW_OPTIONS: Final[dict[str, Any]] = {"data_page_size": _PAGE_BYTES, "write_page_index": True}


def is_sliced(schema: pa.Schema) -> bool:
    return SLICE_COLUMN in schema.names


def in_order(rows: pa.Table) -> pa.Table:
    """The rows sorted by slice; the sort is stable."""
    return rows.sort_by(SLICE_COLUMN)


def group_rows(rows: pa.Table) -> int:
    bytes_a_row = rows.nbytes / max(1, rows.num_rows)
    return max(1, int(GROUP_BYTES / max(1.0, bytes_a_row)))
