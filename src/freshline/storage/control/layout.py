"""Where things are in a warehouse's storage."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from freshline.base.disk import full_disk
from freshline.base.errors import InputError
from freshline.base.paths import confined
from freshline.storage.control.control_folder import ControlFolder
from freshline.storage.control.permissions import make_storage, modes_of
from freshline.storage.control.placements import Placements


class StorageLayout:
    """The folders and files of one storage: users' tables, and what Freshline needs to run them."""

    def __init__(self, storage: Path) -> None:
        self.root = storage
        self.tables = storage / "tables"
        self._freshline = storage / "_freshline"
        self.quarantine = self._freshline / "quarantine"
        self.archive = self._freshline / "archive"
        self.placements = Placements(self._freshline / "placements")

    def table(self, name: str) -> Path:
        """The folder of a table."""
        return confined(self.tables, name)

    def control(self, node: str | None = None) -> ControlFolder:
        """What belongs to the run of a node; None: of a warehouse that has none."""
        folder = self._freshline
        return ControlFolder(folder if node is None else confined(folder / "nodes", node))

    def controls(self, nodes: Collection[str]) -> list[ControlFolder]:
        """Those of all runs of a warehouse with such nodes."""
        return [self.control(node) for node in nodes] or [self.control()]

    def other_controls(self, nodes: Collection[str]) -> list[ControlFolder]:
        """Those of runs that other definitions have, or had: of nodes that are not these, or without any."""
        folders = sorted(path.name for path in (self._freshline / "nodes").glob("*") if path.is_dir())
        found = [self.control(name) for name in folders if name not in nodes]
        return [*found, self.control()] if nodes else found

    def first_control(self, nodes: Collection[str]) -> ControlFolder:
        """That of the run which answers for all."""
        return self.controls(nodes)[0]

    def prepare(self, control: ControlFolder, *, private: bool = True) -> None:
        """Makes what is missing for a run; fails where the storage cannot be written.

        A new storage is its owner's alone if it is to be `private`, and the folder above is not shared.
        """
        try:
            make_storage(self.root, private=private)
            with modes_of(self.root):
                for folder in (self.tables, control.lease, control.logs, self.quarantine, self.archive):
                    folder.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=control.folder) as probe:
                    probe.write(b"writable")
        except OSError as error:
            raise InputError(
                f"the storage {self.root} cannot be written: {full_disk(error) or error.strerror or error}",
                "Name another folder under 'storage', or make this one writable",
            ) from error

    def clear(self, feeds: Iterable[str]) -> None:
        """Removes unfinished copies of these feeds' files. Only the run that loads them may call it."""
        for feed in feeds:
            drafts = [
                *self.quarantine.glob(f"*/{feed}/**/.*.draft"),
                *self.quarantine.glob(f"*/{feed}/**/.*.tmp"),
            ]
            for path in drafts:
                path.unlink(missing_ok=True)
