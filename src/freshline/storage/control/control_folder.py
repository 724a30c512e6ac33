"""What belongs to one run: its lease, what it remembers, and what it tells.

A warehouse that runs as one has one such folder; one that runs on several nodes has one for each, so that no
two runs, on whatever hosts, ever open the same database.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from freshline.storage.control.lease import Identity, StorageInUse, holding_run
from freshline.storage.control.scratch import clear_scratch

# A lease's draft lives for as long as it takes to write a line; its writer may hold no lease yet.
_DRAFT_MAX_S: Final = 60.0


class ControlFolder:
    """The files of one run, and of those before it in the same place."""

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
        """Removes what processes that are dead left unfinished. Only the holder of the lease may call it."""
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
    """StorageInUse where one of these, which the definitions do not know, runs.

    It would write the same tables. Called with the lease held, so of two at least one sees the other.
    """
    for control in controls:
        run = holding_run(control.lease, identity)
        if run is not None:
            what = f"the storage is in use by other definitions (run {run}, {control.folder})"
            raise StorageInUse(what, "Stop that run, or give this one another storage")
