"""Temporary folders of processes, in the storage's control folder: the next run clears them.

A file beside each folder names its owner. It is written first and removed last, so every folder has one.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final

from freshline.base.processes import process_start
from freshline.storage.control.lease import Identity

# A process on another host cannot be checked; without a lease none works for this long.
_DEAD_AFTER_S: Final = 86_400.0


@contextmanager
def scratch_folder(scratch: Path, identity: Identity, *, has_lease: bool) -> Iterator[Path]:
    """A folder of this process, removed at the end. `has_lease`: this process holds the storage's lease."""
    scratch.mkdir(parents=True, exist_ok=True)
    folder, owner = scratch / identity.run, scratch / f"{identity.run}.json"
    owner.write_text(json.dumps({"identity": asdict(identity), "has_lease": has_lease}), encoding="utf-8")
    try:
        folder.mkdir()
        yield folder
    finally:
        _remove(folder, owner)


def clear_scratch(scratch: Path, identity: Identity) -> None:
    """Removes the folders of dead processes. Only the holder of the storage's lease may call it."""
    for owner in scratch.glob("*.json"):
        if owner.stem != identity.run and _is_dead(owner, identity):
            _remove(owner.with_suffix(""), owner)


def _is_dead(owner: Path, mine: Identity) -> bool:
    try:
        said = json.loads(owner.read_text(encoding="utf-8"))
        whose = Identity(**said["identity"])
        if said["has_lease"]:
            return True  # the lease is ours now
        if whose.host == mine.host:
            return process_start(whose.pid) != whose.started
    except (ValueError, TypeError, KeyError):
        pass  # incomplete: its writer was interrupted or is still writing
    except OSError:
        return False  # the file is gone or its age unknown
    with suppress(OSError):
        return time.time() - owner.stat().st_mtime > _DEAD_AFTER_S
    return False


def _remove(folder: Path, owner: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        owner.unlink(missing_ok=True)
