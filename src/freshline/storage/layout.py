"""Where things are in a warehouse's storage."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from freshline.definitions.errors import InputError
from freshline.storage.disk import full_disk


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
        self.ledger = self.control / "ledger.sqlite"
        self.history = self.control / "history.sqlite"
        self.logs = self.control / "logs"
        self.quarantine = self.control / "quarantine"
        self.archive = self.control / "archive"

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return confined(self.tables, name)

    def prepare(self) -> None:
        """Makes the folders that are missing; fails where the storage cannot be written."""
        probe = self.control / f".probe-{os.getpid()}"
        try:
            for folder in (self.tables, self.lease, self.logs, self.quarantine, self.archive):
                folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"writable")
            probe.unlink()
        except OSError as error:
            raise InputError(
                f"the storage {self.root} cannot be written: {full_disk(error) or error.strerror or error}",
                "Name another folder under 'storage', or make this one writable",
            ) from error
