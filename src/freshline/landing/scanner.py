"""Finds the visible files below a directory, and what has changed since the last scan."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

# The clock of a file system may tick only every second or two. A change within a tick of the last scan does
# not alter the modification time, so younger files are checked again.
YOUNG_NS: Final = 2_000_000_000
# Checking a file takes some 20 to 50 µs. With this interval per file, checking all of them takes at most a
# two-thousandth of the time.
_FULL_US_A_FILE: Final = 100_000
_FEW: Final = 100
# A known file takes these bytes instead of three objects: a landing directory may keep a million files.
_STAMP: Final = Struct("=Qqq")  # inode, size, modification time
_INODE: Final = Struct("=Q")


class SeenFile(NamedTuple):
    """A file as it was seen; its name is relative to the root, with `/` between its parts."""

    name: str
    path: str
    size: int
    mtime_ns: int


class _Folder:
    """A directory as it was last listed."""

    __slots__ = ("folders", "mtime_ns", "stamps", "young", "young_files")

    def __init__(self) -> None:
        self.mtime_ns = -1
        self.young = True  # it may have changed again without a new modification time
        self.stamps: dict[str, bytes] = {}  # of its files, by the last part of the name
        self.young_files: set[str] = set()
        self.folders: list[str] = []  # relative to the root


class Scanner:
    """Looks for files repeatedly, at little cost if nothing has changed.

    A scan does not list an unmodified directory again, nor check a file with the same inode again. Every
    `full_every` scans it checks everything, to notice files that were overwritten in place; with many files
    it does so less often. A file is not visible if its name, or that of one of its directories, begins with
    `.` or `_` or ends in `.tmp`.
    """

    def __init__(self, root: Path, full_every: int = 60) -> None:
        assert full_every >= 1, "a scanner that never looks at everything"
        self.root = root
        self.missing = False  # the root does not exist (yet)
        self.fresh: list[SeenFile] = []  # new or changed since the last scan
        self.gone: list[str] = []  # the names of files that no longer exist
        self.troubles: dict[str, str] = {}  # what could not be read, and why
        self.link: str | None = None  # the first symbolic link that any scan has seen
        self._full_every = full_every
        self._scans_since_full = full_every
        self._full_from_us = 0  # no full scan before this instant
        self._folders: dict[str, _Folder] = {}

    def scan(self, now_us: int) -> None:
        """Looks at this instant (microseconds since the Unix epoch). To the first scan all files are new."""
        now_ns = now_us * 1_000
        self._scans_since_full += 1
        full = self._scans_since_full > self._full_every and now_us >= self._full_from_us
        self.fresh, self.gone, self.troubles = [], [], {}
        before, self._folders = self._folders, {}
        self.missing = False
        pending = [""]
        while pending:
            name = pending.pop()
            folder = self._look(name, before.pop(name, None), full, now_ns)
            if folder is not None:
                self._folders[name] = folder
                pending += folder.folders
        for name, folder in before.items():
            self._lose(name, folder.stamps)
        if full:
            self._scans_since_full = 1
            files = sum(len(folder.stamps) for folder in self._folders.values())
            self._full_from_us = now_us + max(0, files - _FEW) * _FULL_US_A_FILE

    def _look(self, name: str, folder: _Folder | None, full: bool, now_ns: int) -> _Folder | None:
        path = os.path.join(self.root, name)
        try:
            mtime_ns = os.stat(path).st_mtime_ns
            if folder is None:
                folder = _Folder()
            if full or folder.young or folder.mtime_ns != mtime_ns:
                self._list(name, path, folder, full, now_ns)
            else:
                for each in [*folder.young_files]:
                    self._see(name, os.path.join(path, each), each, folder, now_ns)
        except FileNotFoundError:
            self.missing = self.missing or not name
            if folder is not None:
                self._lose(name, folder.stamps)
            return None
        except OSError as error:
            self.troubles[name] = error.strerror or str(error)
            return folder
        folder.mtime_ns = mtime_ns
        folder.young = abs(now_ns - mtime_ns) < YOUNG_NS
        if not folder.young_files:
            folder.young_files = set()  # a set keeps the memory of its largest size
        return folder

    def _list(self, name: str, path: str, folder: _Folder, full: bool, now_ns: int) -> None:
        folders: list[str] = []
        # For most files only the inode is compared, which the listing contains.
        settled: dict[str, bytes] = {} if full else folder.stamps
        there: set[str] = set()
        with os.scandir(path) as entries:
            for entry in entries:
                own, inode = entry.name, entry.inode()
                stamp = None if own in folder.young_files else settled.get(own)
                if stamp is not None and _inode(stamp) == inode:
                    there.add(own)
                elif self._is_visible(entry, name):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(_joined(name, own))
                        continue
                    there.add(own)
                    self._see(name, entry.path, own, folder, now_ns, inode)
        folder.folders = folders  # only now: after an interrupted listing the other folders still exist
        for own in folder.stamps.keys() - there:
            self._forget(name, own, folder)

    def _is_visible(self, entry: os.DirEntry[str], folder_name: str) -> bool:
        own = entry.name
        if own[0] in "._" or own.endswith(".tmp"):
            return False
        try:
            own.encode()
        except UnicodeEncodeError:
            self.troubles[folder_name] = f"the name {own!r} is not UTF-8"
            return False
        # Links are not followed: the target may be outside, or be found under its own name.
        if entry.is_symlink():
            self.link = self.link or _joined(folder_name, own)
            return False
        return True

    def _see(
        self, folder_name: str, path: str, own: str, folder: _Folder, now_ns: int, listed: int | None = None
    ) -> None:
        """Checks one file, which may have changed, vanished, or not be a regular file.

        `listed` is the inode in the listing, which some file systems give another number than the file has.
        """
        try:
            seen = os.stat(path, follow_symlinks=False)
        except FileNotFoundError:
            self._forget(folder_name, own, folder)
            return
        except OSError as error:
            # The other files can be read; every scan tries this one again.
            folder.young_files.add(own)
            self.troubles[_joined(folder_name, own)] = error.strerror or str(error)
            return
        if not stat.S_ISREG(seen.st_mode):
            self._forget(folder_name, own, folder)
            return
        mtime_ns = seen.st_mtime_ns
        if abs(now_ns - mtime_ns) < YOUNG_NS:
            folder.young_files.add(own)
        else:
            folder.young_files.discard(own)
        known = folder.stamps.get(own)
        if listed is None:
            listed = seen.st_ino if known is None else _inode(known)
        stamp = folder.stamps[own] = _STAMP.pack(listed, seen.st_size, mtime_ns)
        if known is None or known[_INODE.size :] != stamp[_INODE.size :]:
            self.fresh.append(SeenFile(_joined(folder_name, own), path, seen.st_size, mtime_ns))

    def _forget(self, folder_name: str, own: str, folder: _Folder) -> None:
        folder.young_files.discard(own)
        if folder.stamps.pop(own, None) is not None:
            self._lose(folder_name, (own,))

    def _lose(self, folder_name: str, files: Collection[str]) -> None:
        self.gone += [_joined(folder_name, own) for own in files]


def _joined(folder_name: str, own: str) -> str:
    return f"{folder_name}/{own}" if folder_name else own


def _inode(stamp: bytes) -> int:
    (inode,) = _INODE.unpack_from(stamp)
    return int(inode)
