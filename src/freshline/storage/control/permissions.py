"""Permissions of a storage: only its owner has access, unless the folder above is set up for sharing."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_DEFAULT_ACL: Final = "system.posix_acl_default"
# The entries of a default ACL that set a new file's mode; the mask stands for the group.
_OWNER, _GROUP, _MASK, _OTHERS = 0x01, 0x04, 0x10, 0x20


def make_storage(root: Path, *, private: bool) -> None:
    """Makes a storage's folder if it is missing: private to its owner, unless the one above is shared."""
    if root.exists():
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    shared = root.parent.stat().st_mode & stat.S_ISGID or _acl_umask(root.parent) is not None
    root.mkdir(0o777 if shared or not private else 0o700, exist_ok=True)


@contextmanager
def modes_of(root: Path) -> Iterator[None]:
    """Within this context the process and its children make files as private as the storage's folder."""
    umask = _umask_of(root)
    if umask is None:
        yield
        return
    before = os.umask(umask)
    try:
        yield
    finally:
        os.umask(before)


def _umask_of(root: Path) -> int | None:
    """The umask that fits the folder's permissions; None if the process's own umask does."""
    try:
        mode = root.stat().st_mode
    except OSError:
        return None
    # The file system applies its ACL by itself, but Spark sets modes and would undo that.
    umask = _acl_umask(root)
    return 0o077 if umask is None and not mode & 0o077 else umask


def _acl_umask(folder: Path) -> int | None:
    """The umask that corresponds to a folder's default ACL; None if the folder has no ACL."""
    if not hasattr(os, "getxattr"):
        return None  # only Linux has this call
    try:
        acl = os.getxattr(folder, _DEFAULT_ACL)
    except OSError:
        return None
    allowed: dict[int, int] = {tag: rights for tag, rights, _ in struct.iter_unpack("<HHI", acl[4:])}
    group = allowed.get(_MASK, allowed.get(_GROUP, 0))
    return 0o777 & ~(allowed.get(_OWNER, 0) << 6 | group << 3 | allowed.get(_OTHERS, 0))
