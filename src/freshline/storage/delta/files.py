"""The two kinds of files that a table's log names."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from freshline.landing.digest import content_digest


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A Parquet file of a table. `oldest` and `newest` are of its timestamp column; None if not known."""

    path: str  # relative to the table
    rows: int
    size: int
    oldest: int | None
    newest: int | None


@dataclass(frozen=True, slots=True)
class ConsumedFile:
    """A data file of a feed that has been loaded; its name is relative to the feed's landing folder."""

    name: str
    size: int
    mtime_ns: int
    digest: str
    discarded: bool = False  # it changed so little that none of its records were loaded

    def record(self) -> dict[str, Any]:
        """The file as a commit lists it. `discarded` is left out if it is false."""
        record = asdict(self)
        if not self.discarded:
            del record["discarded"]
        return record

    def is_at(self, path: Path) -> bool:
        """Whether the file is still there and unchanged."""
        try:
            there = path.stat()
            if (there.st_size, there.st_mtime_ns) == (self.size, self.mtime_ns):
                return True
            return there.st_size == self.size and content_digest(path) == self.digest
        except FileNotFoundError:
            return False
