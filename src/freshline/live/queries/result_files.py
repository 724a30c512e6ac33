"""The newest answer of each query: a file in the storage, replaced at once."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from freshline.base.atomic_write import replace_text
from freshline.base.names import is_name
from freshline.storage.control.control_folder import ControlFolder

_DIGITS_MAX = 38  # of Spark's decimals


class ResultFiles:
    """The files with the newest answers. Tracks write, whoever may read the storage reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, query: str, record: Mapping[str, Any]) -> None:
        """Keeps an answer (`spark.answering.window_reading.Outcome.record`) instead of the one before."""
        self._folder.mkdir(exist_ok=True)
        replace_text(self._path(query), json.dumps(plain(record)))

    def read(self, query: str) -> dict[str, Any] | None:
        """A query's newest answer as JSON has it; None where there is none."""
        if not is_name(query):
            return None
        try:
            record = json.loads(self._path(query).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return record if isinstance(record, dict) else None

    def _path(self, query: str) -> Path:
        return self._folder / f"{query}.json"


def newest(controls: Iterable[ControlFolder], query: str) -> dict[str, Any] | None:
    """A query's newest answer, on whichever node it is answered."""
    found = (ResultFiles(control.results).read(query) for control in controls)
    return next((record for record in found if record is not None), None)


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
