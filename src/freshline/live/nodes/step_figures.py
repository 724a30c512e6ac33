"""Figures of steps and outputs during a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq

from freshline.base.arrow_instants import in_microseconds
from freshline.base.latency_histogram import LatencyHistogram
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.steps.job import StepRun
from freshline.kernel.steps.recoveries import recoveries_of
from freshline.kernel.steps.task import steps_of
from freshline.live.nodes.step_status import OutputStatus, StepStatus
from freshline.live.tables.judge import FailureCounts
from freshline.live.tables.late_rows import LateRows
from freshline.spark.loading.load_result import LoadResult
from freshline.sql.columns import LATE_COLUMN
from freshline.storage.delta.read_table import ReadTable

Instants = npt.NDArray[np.int64]
NO_ROWS: Final[Instants] = np.array([], np.int64)


@dataclass(frozen=True, slots=True)
class CommittedStep:
    """A committed step of a job and the time of its commit."""

    part: StepRun
    committed: LoadResult | None  # None: before this run
    at: int
    instants: Instants  # of an output's rows that are not late


@dataclass(slots=True)
class _Seen:
    late: LateRows
    rows_shed: int = 0
    misses: int = 0
    # Of an output:
    rows_missed: int = 0
    latencies: LatencyHistogram = field(default_factory=LatencyHistogram)


class StepFigures:
    """Counts the work of each step. Only the driver's thread uses it."""

    def __init__(self, warehouse: Warehouse, node: str, troubles: FailureCounts) -> None:
        self._steps = warehouse.steps
        self._node = node
        self._troubles = troubles
        self._seen = {
            name: _Seen(LateRows(name, None if step.feed is None else warehouse.feeds[step.feed]))
            for name, step in warehouse.steps.items()
        }

    def done(self, done: CommittedStep) -> str | None:
        """Counts a committed step; returns the warning when many of its rows have come late."""
        name = done.part.name
        seen, deadline_us = self._seen[name], self._steps[name].deadline_us
        instance = done.part.instance
        seen.misses += not instance.recovery and done.at > instance.deadline
        if deadline_us is not None:
            ages_us = done.at - done.instants
            seen.latencies.add(ages_us)
            seen.rows_missed += int((ages_us > deadline_us).sum())
        committed = done.committed
        if committed is None:
            return None
        seen.rows_shed += committed.rows_shed
        return seen.late.add(committed.rows, committed.rows_late, done.part.loaded_from, done.part.files)

    def steps(self, kernel: Kernel) -> tuple[StepStatus, ...]:
        recoveries = recoveries_of(kernel)
        return tuple(
            StepStatus(
                name=step.name,
                node=self._node,
                sub_deadline_us=step.terms.sub_deadline_us,
                misses=self._seen[step.name].misses,
                backlog=len(step.waiting) + (step.job is not None),
                rows=self._seen[step.name].late.rows,
                rows_late=self._seen[step.name].late.late,
                freshness_us=None if step.empty else step.freshness,
                message=self._troubles.reason(step.name),
                rows_shed=self._seen[step.name].rows_shed,
                late_warning=self._seen[step.name].late.warning,
                recovering=step.recovering,
                catching_up=recoveries is not None and recoveries.catching_up,
                files_waiting=len(step.unloaded()),
                backlogs=() if recoveries is None else tuple(each[1:] for each in recoveries.of(step.name)),
            )
            for step in steps_of(kernel)
        )

    def outputs(self) -> tuple[OutputStatus, ...]:
        """The statuses of the outputs, with the ages of their rows."""
        return tuple(
            OutputStatus(
                name=name,
                node=self._node,
                deadline_us=step.deadline_us,
                rows=int(self._seen[name].latencies.rows),
                misses=self._seen[name].rows_missed,
                p50_us=self._seen[name].latencies.quantile_us(0.5),
                p95_us=self._seen[name].latencies.quantile_us(0.95),
                max_us=self._seen[name].latencies.max_us,
            )
            for name, step in self._steps.items()
            if step.deadline_us is not None
        )


def rows_of(table: ReadTable, committed: LoadResult) -> Instants:
    """The timestamps of a commit's rows, without late ones."""
    has_late = LATE_COLUMN in table.schema.names
    columns = [table.timestamp, *([LATE_COLUMN] if has_late else [])]
    found = [NO_ROWS]
    for file in committed.files:
        rows = pq.read_table(table.path / file.path, columns=columns, partitioning=None)
        if has_late:
            rows = rows.filter(pc.invert(rows[LATE_COLUMN]))
        found.append(in_microseconds(rows[table.timestamp]).to_numpy())
    return np.concatenate(found)
