"""Unsigned integers in Parquet files, which Spark may read as negative ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

_WIDTHS: Final = {"short": 16, "int": 32, "long": 64}
_WIDEST: Final = "decimal(20, 0)"


def too_narrow(written: Any, declared_bits: Mapping[str, int]) -> str | None:
    """What is wrong with a file's columns, an Arrow schema, where integers of so many bits are declared.

    These are by name in lower case, for Spark ignores case. Of UINT64 for a declared `long` Spark makes
    negative numbers, or fails: it depends on the file's encoding.
    """
    for field in written:
        bits = declared_bits.get(field.name.lower())
        if bits is not None and pa.types.is_unsigned_integer(field.type) and bits <= field.type.bit_width:
            wider = next((name for name, width in _WIDTHS.items() if width > field.type.bit_width), _WIDEST)
            return (
                f"its column `{field.name}` is {str(field.type).upper()}, which does not fit the declared "
                f"type: declare {wider}, or write signed numbers"
            )
    return None
