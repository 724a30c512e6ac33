"""The durations of jobs, which each node shares in a file: no node opens another host's database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from freshline.base.atomic_write import replace_text
from freshline.planning.costs.fit import PastRun

RUNS_TOLD: Final = 100  # per table


def tell_runs(path: Path, runs: Mapping[str, Sequence[PastRun]]) -> None:
    """Replaces the node's file of runs."""
    record = {table: [list(run) for run in past] for table, past in runs.items()}
    replace_text(path, json.dumps(record))


class NodeRuns:
    """The runs that all nodes have shared. A table that moved has runs of several nodes."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._runs: dict[str, list[PastRun]] = {}
        for path in paths:
            with suppress(OSError, ValueError, TypeError, AttributeError):  # no file yet, or a damaged one
                for table, past in json.loads(path.read_bytes()).items():
                    self._runs.setdefault(table, []).extend(PastRun(*run) for run in past)

    def runs(self, table: str) -> Sequence[PastRun]:
        """The newest runs of a table, oldest first."""
        return sorted(self._runs.get(table, []))[-RUNS_TOLD:]
