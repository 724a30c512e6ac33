"""The agreed placement of a warehouse's steps on nodes: numbered files, of which the highest counts.

The file system grants the next number to one node only, so nodes that start together take the same placement.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Placements:
    """All placements that a storage has had."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def newest(self) -> tuple[int, dict[str, Any] | None]:
        """The number and content of the current placement; 0 and None if there is none."""
        for number in sorted(self._numbers(), reverse=True):
            try:
                record = json.loads(self._file(number).read_bytes())
            except (OSError, ValueError):
                continue  # damaged: the one before counts, and the next still gets a higher number
            if isinstance(record, dict):
                return number, record
        return 0, None

    def add(self, record: Mapping[str, Any], after: int) -> bool:
        """Adds the next placement after that number; False if another node was first."""
        self._folder.mkdir(parents=True, exist_ok=True)
        highest = max(self._numbers(), default=0)
        if highest != after and self.newest()[0] != after:
            return False
        draft = self._folder / f".{uuid.uuid4().hex}"
        draft.write_text(json.dumps(record, indent=1), encoding="utf-8")
        try:
            os.link(draft, self._file(highest + 1))
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("*.json") if path.stem.isdecimal()]

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:06d}.json"
