"""A node whose steps take a given time: Spark's job, and sleep for the rest."""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path
from unittest.mock import patch

from freshline.base import signals
from freshline.definitions.load import load
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.steps.job import StepJob, StepRun
from freshline.live.nodes import node_work
from freshline.live.nodes.parent_lifeline import end_with_parent
from freshline.live.nodes.step_figures import CommittedStep
from freshline.live.nodes.step_worker import StepWorker
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.storage.delta.read_table import ReadTable
from freshline_lab.experiments.placement.live_placement import call_s

TABLES: dict[str, ReadTable] = {}  # of this process's run


class PacedWorker(StepWorker):
    """Sleeps before each step for the time that Spark will not need, estimated from earlier steps."""

    _rng = random.Random("paced")
    _usual_s = 0.1

    def _do(self, job: StepJob, part: StepRun) -> CommittedStep | None:
        if self._computes(part):
            time.sleep(max(0.0, call_s(self._rng) - self._usual_s))
        begun = time.monotonic()
        done = super()._do(job, part)
        if done is not None and done.committed is not None and done.committed.computed:
            self._usual_s += 0.2 * (time.monotonic() - begun - self._usual_s)
        return done

    def _computes(self, part: StepRun) -> bool:
        """Whether there is anything to compute: not for a dropped tuple."""
        return bool(part.files) or any(
            TABLES[source.name].files_with(part.loaded_from, part.loaded_to) for source in part.step.reads
        )


def main(folder: Path, node: str) -> None:
    signals.listen()
    end_with_parent()
    warehouse = load(folder / "freshline.yml")
    with patch.object(node_work, "StepWorker", PacedWorker):
        run(warehouse, folder, node)


def run(warehouse: Warehouse, folder: Path, node: str) -> None:
    with Runner(
        warehouse, folder, folder / "warehouse", RunOptions(master="local[1]", node=node, warm="all")
    ) as runner:
        TABLES.update(runner.readable)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: runner.stop("told to end"))
        runner.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
