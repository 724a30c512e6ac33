"""The files of one run: its lease, its history and its status.

A warehouse without nodes has one such folder. A warehouse with nodes has one for each node, so no two runs
open the same database.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from freshline.storage.control.lease import Identity, StorageInUse, holding_run
from freshline.storage.control.scratch import clear_scratch

# A lease's draft exists only while one line is written. Its writer may not hold the lease yet.
_DRAFT_MAX_S: Final = 60.0


class ControlFolder:
    """The files of one run and of its predecessors in the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lease = folder / "lease"
        self.status = folder / "status.json"
        self.service = folder / "service.json"
        self.results = folder / "results"
        self.ledger = folder / "ledger.sqlite"
        self.history = folder / "history.sqlite"
        self.logs = folder / "logs"
        self.scratch = folder / "scratch"
        self.landing = folder / "landing.json"
        self.definitions = folder / "definitions.json"
        self.drained = folder / "drained.json"
        self.runs = folder / "runs.json"

    def clear(self, identity: Identity) -> None:
        """Removes unfinished files of dead processes. Only the holder of the lease may call it."""
        clear_scratch(self.scratch, identity)
        drafts = [*self.folder.glob(".*.draft")]
        drafts += self.results.glob(".*.draft")
        drafts += [path for path in self.lease.glob(".*") if _age_s(path) > _DRAFT_MAX_S]
        for path in [*drafts, self.service]:
            path.unlink(missing_ok=True)


def _age_s(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def check_no_other(controls: Iterable[ControlFolder], identity: Identity) -> None:
    """Raises StorageInUse if a run holds one of these folders, which the definitions do not name.

    Such a run would write the same tables. The caller holds its own lease: of two runs, one sees the other.
    """
    for control in controls:
        run = holding_run(control.lease, identity)
        if run is not None:
            what = f"the storage is in use by other definitions (run {run}, {control.folder})"
            raise StorageInUse(what, "Stop that run, or give this one another storage")
