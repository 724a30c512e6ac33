"""Timestamps of Arrow and Parquet as instants."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def in_microseconds(timestamps: Any) -> Any:
    """Timestamps of whatever unit in whole microseconds since the Unix epoch; nanoseconds are cut off."""
    return timestamps.cast(pa.timestamp("us", timestamps.type.tz), safe=False).cast(pa.int64())
