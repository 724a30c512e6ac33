"""Finds the visible files below a directory, and what has changed since the last scan."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

# The clock of a file system may tick only every second or two. A change within a tick of the last scan does
# not alter the modification time, so younger files are checked again.
YOUNG_NS: Final = 2_000_000_000
# Checking a file takes some 20 to 50 µs. With this interval per file, checking all of them takes at most a
# two-thousandth of the time.
_FULL_US_A_FILE: Final = 100_000
_FEW: Final = 100


class SeenFile(NamedTuple):
    """A file as it was seen; its name is relative to the root, with `/` between its parts."""

    name: str
    path: str
    size: int
    mtime_ns: int


class _Folder:
    """A directory as it was last listed."""

    __slots__ = ("files", "folders", "inodes", "mtime_ns", "young", "young_files")

    def __init__(self) -> None:
        self.mtime_ns = -1
        self.young = True  # it may have changed again without a new modification time
        self.files: dict[str, SeenFile] = {}  # by the last part of the name
        self.inodes: dict[str, int] = {}
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
        self._found: list[SeenFile] | None = None

    def scan(self, now_us: int) -> list[SeenFile]:
        """All visible files at this instant (microseconds since the Unix epoch)."""
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
        for folder in before.values():
            self.gone += [found.name for found in folder.files.values()]
        if self._found is None or self.fresh or self.gone:
            self._found = [found for folder in self._folders.values() for found in folder.files.values()]
        if full:
            self._scans_since_full = 1
            self._full_from_us = now_us + max(0, len(self._found) - _FEW) * _FULL_US_A_FILE
        return self._found

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
                self.gone += [found.name for found in folder.files.values()]
            return None
        except OSError as error:
            self.troubles[name] = error.strerror or str(error)
            return folder
        folder.mtime_ns = mtime_ns
        folder.young = abs(now_ns - mtime_ns) < YOUNG_NS
        return folder

    def _list(self, name: str, path: str, folder: _Folder, full: bool, now_ns: int) -> None:
        folders: list[str] = []
        # For most files only the inode is compared, which the listing contains.
        settled = {} if full else folder.inodes
        if not full and folder.young_files:
            settled = {own: inode for own, inode in settled.items() if own not in folder.young_files}
        there: set[str] = set()
        with os.scandir(path) as entries:
            for entry in entries:
                own = entry.name
                inode = entry.inode()
                if settled.get(own) == inode:
                    there.add(own)
                elif self._is_visible(entry, name):
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(f"{name}/{own}" if name else own)
                        continue
                    there.add(own)
                    folder.inodes[own] = inode
                    self._see(name, entry.path, own, folder, now_ns)
        folder.folders = folders  # only now: after an interrupted listing the other folders still exist
        for own in folder.files.keys() - there:
            self._forget(own, folder)

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
            self.link = self.link or (f"{folder_name}/{own}" if folder_name else own)
            return False
        return True

    def _see(self, folder_name: str, path: str, own: str, folder: _Folder, now_ns: int) -> None:
        """Checks one file, which may have changed, vanished, or not be a regular file."""
        try:
            seen = os.stat(path, follow_symlinks=False)
        except FileNotFoundError:
            self._forget(own, folder)
            return
        except OSError as error:
            # The other files can be read; every scan tries this one again.
            folder.young_files.add(own)
            self.troubles[f"{folder_name}/{own}" if folder_name else own] = error.strerror or str(error)
            return
        if not stat.S_ISREG(seen.st_mode):
            self._forget(own, folder)
            return
        mtime_ns = seen.st_mtime_ns
        if abs(now_ns - mtime_ns) < YOUNG_NS:
            folder.young_files.add(own)
        else:
            folder.young_files.discard(own)
        known = folder.files.get(own)
        if known is None or known.size != seen.st_size or known.mtime_ns != mtime_ns:
            found = SeenFile(f"{folder_name}/{own}" if folder_name else own, path, seen.st_size, mtime_ns)
            folder.files[own] = found
            self.fresh.append(found)

    def _forget(self, own: str, folder: _Folder) -> None:
        found = folder.files.pop(own, None)
        folder.inodes.pop(own, None)
        folder.young_files.discard(own)
        if found is not None:
            self.gone.append(found.name)
