"""Values as JSON has them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

_DIGITS_MAX: Final = 38  # of Spark's decimals


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers exactly where they can be, times as text, no infinities.

    >>> plain(Decimal("12.50")), plain(float("nan")), plain(b"\\x00")
    (12.5, None, '00')
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        if not value.is_finite():
            return None
        whole = value.adjusted() < _DIGITS_MAX and value == value.to_integral_value()
        return int(value) if whole else plain(float(value))
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    return str(value)
