"""The paths in a warehouse's storage."""

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
    """The folders and files of one storage: the users' tables and Freshline's own files."""

    def __init__(self, storage: Path) -> None:
        self.root = storage
        self.tables = storage / "tables"
        self._freshline = storage / "_freshline"
        self.quarantine = self._freshline / "quarantine"
        self.archive = self._freshline / "archive"
        self.placements = Placements(self._freshline / "placements")

    def table(self, name: str) -> Path:
        return confined(self.tables, name)

    def control(self, node: str | None = None) -> ControlFolder:
        """The control folder of a node's run; `node` is None in a warehouse without nodes."""
        folder = self._freshline
        return ControlFolder(folder if node is None else confined(folder / "nodes", node))

    def controls(self, nodes: Collection[str]) -> list[ControlFolder]:
        """The control folders of all runs of a warehouse with these nodes."""
        return [self.control(node) for node in nodes] or [self.control()]

    def other_controls(self, nodes: Collection[str]) -> list[ControlFolder]:
        """The control folders that belong to other definitions: to other nodes, or to a run without nodes."""
        folders = sorted(path.name for path in (self._freshline / "nodes").glob("*") if path.is_dir())
        found = [self.control(name) for name in folders if name not in nodes]
        return [*found, self.control()] if nodes else found

    def first_control(self, nodes: Collection[str]) -> ControlFolder:
        """The control folder of the run that reports for all nodes."""
        return self.controls(nodes)[0]

    def prepare(self, control: ControlFolder, *, private: bool = True) -> None:
        """Makes the folders that a run needs; fails if the storage cannot be written.

        With `private` only the owner may read a new storage, unless the folder above is shared.
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
        """Removes unfinished copies of these feeds' files. Only the run that loads the feeds may call it."""
        for feed in feeds:
            drafts = [
                *self.quarantine.glob(f"*/{feed}/**/.*.draft"),
                *self.quarantine.glob(f"*/{feed}/**/.*.tmp"),
            ]
            for path in drafts:
                path.unlink(missing_ok=True)
