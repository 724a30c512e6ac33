"""What belongs to one run: who holds it, what it remembers, and what it tells.

A warehouse that runs as one has one such folder; one that runs on several nodes has one for each, so that no
two runs, on whatever hosts, ever open the same database.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from freshline.storage.control.lease import Identity
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
