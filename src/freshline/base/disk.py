"""Recognises a full disk in the errors of Python, SQLite, Java and Rust."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
import sys
from pathlib import Path
from typing import Final

_NUMBERS: Final = (errno.ENOSPC, errno.EDQUOT)
_SAID: Final = "|".join(re.escape(os.strerror(number)) for number in _NUMBERS)
# How Java and Rust report it. A record's value may contain the same words, so the words alone do not count.
_TEXT: Final = re.compile(
    rf"java\.(?:io|nio\.file)\.\w+: (?:[^\n]* \((?:{_SAID})\)|(?:[^\n]*: )?(?:{_SAID})) *$"
    rf"|\(os error (?:{'|'.join(map(str, _NUMBERS))})\)",
    re.MULTILINE,
)
_PATH: Final = re.compile(r"(?:(?<=file:)|(?<![\w:/.]))/+[^\s:'\"()]+")


def full_disk(error: BaseException) -> str | None:
    """A sentence about the full disk, with its mount point if that is known; None for any other error."""
    cause: BaseException | None = error
    while cause is not None:
        if _is_full(cause):
            place = _place(cause) or _place(error)
            return "the disk is full" if place is None else f"the disk is full ({place})"
        cause = cause.__cause__ or cause.__context__
    return None


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in _NUMBERS
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL or "disk is full" in str(error)
    return _TEXT.search(str(error)) is not None


def _place(error: BaseException) -> Path | None:
    """The file system with the least free space among those that the error names."""
    names = [getattr(error, "filename", None), getattr(error, "filename2", None)]
    paths = [os.fsdecode(name) for name in names if isinstance(name, str | bytes | os.PathLike)]
    found = {_mount(Path(path)) for path in (*paths, *_PATH.findall(str(error)))}
    mounts = [mount for mount in found if mount is not None]
    return min(mounts, key=_free_bytes, default=None)


def _mount(path: Path) -> Path | None:
    absolute = Path(os.path.abspath(path))
    return next((folder for folder in (absolute, *absolute.parents) if folder.is_mount()), None)


def _free_bytes(folder: Path) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return sys.maxsize
    return found.f_bavail * found.f_frsize
