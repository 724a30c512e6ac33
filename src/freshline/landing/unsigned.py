"""Detects unsigned integers in Parquet files, which Spark may read as negative ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

_WIDTHS: Final = {"short": 16, "int": 32, "long": 64}
_WIDEST: Final = "decimal(20, 0)"


def too_narrow(written: Any, declared_bits: Mapping[str, int]) -> str | None:
    """What is wrong with the columns of a file (an Arrow schema), if integers of these widths are declared.

    `declared_bits` has names in lower case, because Spark ignores case. Spark reads UINT64 for a declared
    `long` as negative numbers, or fails, depending on the file's encoding.
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
