"""The newest answer of each query: a file in the storage that is replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from freshline.base.atomic_write import replace_text
from freshline.base.json_values import plain
from freshline.base.names import is_name
from freshline.storage.control.control_folder import ControlFolder


class ResultFiles:
    """The files with the newest answers. Tracks write them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, query: str, record: Mapping[str, Any]) -> None:
        """Replaces the last answer by this one (`spark.answering.window_reading.ReadingOutcome.record`)."""
        self._folder.mkdir(exist_ok=True)
        replace_text(self._path(query), json.dumps(plain(record)))

    def read(self, query: str) -> dict[str, Any] | None:
        """A query's newest answer as JSON; None if there is none."""
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
    """A query's newest answer from any node."""
    found = (ResultFiles(control.results).read(query) for control in controls)
    return next((record for record in found if record is not None), None)
