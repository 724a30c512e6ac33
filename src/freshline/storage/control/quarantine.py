"""Data files that could not be loaded, kept with the reason until an operator decides about them.

`files/` has the data files, `reasons/` a record about each, both by feed and name. The reason is written
first: after a crash in between, the file is where it was, and a reason without a file is ignored. A name that
is too long for a suffix is cut; the reason keeps the whole name.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Final

from freshline.base.errors import InputError
from freshline.base.paths import confined

# File systems allow 255 bytes: the rest is for `.json` and for the number of a repeated name.
_NAME_BYTES_MAX: Final = 240


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """A file in quarantine. `stored` is its path there, `name` its name in the feed's landing folder."""

    stored: str
    feed: str
    name: str
    reason: str
    attempts: int
    at: int  # µs since the Unix epoch


class Quarantine:
    """The quarantine of one storage."""

    def __init__(self, folder: Path, clock: Callable[[], int] = time.time_ns) -> None:
        self._files = folder / "files"
        self._reasons = folder / "reasons"
        self._clock_ns = clock

    def put(self, feed: str, name: str, path: Path, reason: str, attempts: int) -> QuarantinedFile:
        """Moves a feed's file into quarantine."""
        stored = self._free(feed, name)
        entry = QuarantinedFile(stored, feed, name, reason, attempts, self._clock_ns() // 1_000)
        _write_reason(self._reason(stored), entry)
        _move(path, self._files / stored)
        return entry

    def entries(self) -> list[QuarantinedFile]:
        """All files in quarantine, by feed and name."""
        found = []
        for path in self._reasons.rglob("*.json"):
            stored = path.relative_to(self._reasons).as_posix().removesuffix(".json")
            # Another process may have dropped the file since it was listed.
            with contextlib.suppress(FileNotFoundError):
                if (self._files / stored).is_file():
                    found.append(QuarantinedFile(stored, **json.loads(path.read_text(encoding="utf-8"))))
        return sorted(found, key=lambda entry: (entry.feed, entry.name, entry.stored))

    def count(self) -> int:
        """How many files are there, without those that are being written. It reads no reasons."""
        return sum(not name.startswith(".") for _, _, names in os.walk(self._files) for name in names)

    def retry(self, entry: QuarantinedFile, landing: Path) -> Path:
        """Moves the file back to its feed's landing folder, where it counts as newly arrived."""
        back = confined(landing, entry.name)
        if back.exists():
            raise InputError(f"{back} already exists", "Move one of the two files away first")
        _move(confined(self._files, entry.stored), back)
        self._forget(entry)
        return back

    def drop(self, entry: QuarantinedFile) -> None:
        confined(self._files, entry.stored).unlink(missing_ok=True)
        self._forget(entry)

    def _forget(self, entry: QuarantinedFile) -> None:
        self._reason(entry.stored).unlink(missing_ok=True)

    def _reason(self, stored: str) -> Path:
        path = confined(self._reasons, stored)
        return path.with_name(path.name + ".json")

    def _free(self, feed: str, name: str) -> str:
        """A free name for a file; a second `a.csv` becomes `a~2.csv`."""
        place = confined(confined(self._files, feed), name)
        free = place = place.with_name(_fitting(place.name))
        number = 1
        while free.exists():
            number += 1
            free = place.with_name(f"{place.stem}~{number}{place.suffix}")
        return free.relative_to(self._files).as_posix()


class QuarantineInPlace(Quarantine):
    """For trials on another owner's files: a file that cannot be loaded stays where it is."""

    def __init__(self, folder: Path, clock: Callable[[], int] = time.time_ns) -> None:
        super().__init__(folder, clock)
        self.left: list[QuarantinedFile] = []

    def put(self, feed: str, name: str, path: Path, reason: str, attempts: int) -> QuarantinedFile:
        self.left.append(
            QuarantinedFile(f"{feed}/{name}", feed, name, reason, attempts, self._clock_ns() // 1_000)
        )
        return self.left[-1]


def _fitting(name: str) -> str:
    """The name; if it is too long, its beginning and a digest."""
    if len(name.encode()) <= _NAME_BYTES_MAX:
        return name
    suffix = PurePath(name).suffix
    end = f"~{_digest(name)}{suffix if len(suffix.encode()) <= 16 else ''}"
    beginning = name.encode()[: _NAME_BYTES_MAX - len(end.encode())].decode(errors="ignore")
    return beginning + end


def _digest(name: str) -> str:
    return blake2b(name.encode(), digest_size=8).hexdigest()


def _write_reason(path: Path, entry: QuarantinedFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "feed": entry.feed,
        "name": entry.name,
        "reason": entry.reason,
        "attempts": entry.attempts,
        "at": entry.at,
    }
    draft = path.with_name(f".{_digest(path.name)}.draft")
    draft.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    draft.replace(path)


def _move(source: Path, target: Path) -> None:
    """Moves a file as a whole, also to another file system."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        # The copy is hidden until it is complete: neither the quarantine nor a feed looks at such names.
        draft = target.with_name(f".{_digest(target.name)}.tmp")
        try:
            shutil.copy2(source, draft)
            with draft.open("rb") as copied:
                os.fsync(copied.fileno())
            draft.rename(target)
        except OSError:
            draft.unlink(missing_ok=True)  # an incomplete copy only fills the disk
            raise
        source.unlink()
