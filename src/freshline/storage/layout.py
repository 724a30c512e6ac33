"""Where things are in a warehouse's storage."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path, PurePath
from typing import Final

from freshline.definitions.errors import InputError
from freshline.storage.disk import full_disk
from freshline.storage.lease import Identity
from freshline.storage.modes import make_storage, modes_of
from freshline.storage.scratch import clear_scratch

# A lease's draft lives for as long as it takes to write a line; its writer may hold no lease yet.
_DRAFT_MAX_S: Final = 60.0


def confined(folder: Path, name: str) -> Path:
    """The path of `name` in the folder; a name that leads out of it, or nowhere, is refused."""
    parts = PurePath(name).parts
    if not parts or PurePath(name).is_absolute() or ".." in parts or "\0" in name:
        raise InputError(f"{name!r} leads out of {folder}", "Use a relative name without '..'")
    return folder.joinpath(*parts)


class Layout:
    """The folders and files of one storage: users' tables, and what Freshline needs to run them."""

    def __init__(self, storage: Path) -> None:
        self.root = storage
        self.tables = storage / "tables"
        self.control = storage / "_freshline"
        self.lease = self.control / "lease"
        self.status = self.control / "status.json"
        self.service = self.control / "service.json"
        self.results = self.control / "results"
        self.ledger = self.control / "ledger.sqlite"
        self.history = self.control / "history.sqlite"
        self.logs = self.control / "logs"
        self.quarantine = self.control / "quarantine"
        self.archive = self.control / "archive"
        self.scratch = self.control / "scratch"
        self.landing = self.control / "landing.json"

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return confined(self.tables, name)

    def prepare(self, *, private: bool = True) -> None:
        """Makes what is missing; fails where the storage cannot be written.

        A new storage is its owner's alone if it is to be `private`, and the folder above is not shared.
        """
        try:
            make_storage(self.root, private=private)
            with modes_of(self.root):
                for folder in (self.tables, self.lease, self.logs, self.quarantine, self.archive):
                    folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=self.control) as probe:
                    probe.write(b"writable")
        except OSError as error:
            raise InputError(
                f"the storage {self.root} cannot be written: {full_disk(error) or error.strerror or error}",
                "Name another folder under 'storage', or make this one writable",
            ) from error

    def clear(self, identity: Identity) -> None:
        """Removes what processes that are dead left unfinished. Only the holder of the lease may call it."""
        clear_scratch(self.scratch, identity)
        drafts = [*self.control.glob(f".{self.status.name}.*"), *self.control.glob(".*.draft")]
        drafts += [*self.quarantine.rglob(".*.draft"), *self.quarantine.rglob(".*.tmp")]
        drafts += self.results.glob(".*.draft")
        drafts += [path for path in self.lease.glob(".*") if _age_s(path) > _DRAFT_MAX_S]
        for path in [*drafts, self.service]:
            path.unlink(missing_ok=True)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
