"""Observation of a run: the worst staleness and lag of each table, and missed deadlines."""

from __future__ import annotations

from collections import defaultdict

from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.task import tables_of
from freshline.kernel.tables.update import Update


class TableMaxima:
    """The maxima of one table in a run."""

    __slots__ = ("behind_at", "jobs", "lag_max_us", "misses", "staleness_max_us")

    def __init__(self) -> None:
        self.staleness_max_us = 0
        self.lag_max_us = 0
        self.jobs = 0
        self.misses = 0
        # The last completion up to which the lag was above a period; -1 before any. Between completions lag
        # only rises. So if it is within a period at the end, this is when it last fell to a period or less.
        self.behind_at = -1


class SimulatedObservation:
    """The maxima over one run.

    Staleness and lag grow until a completion, so their suprema are just before each completion and at the
    end. The driver reports a completion *before* the kernel takes it, while the state still is as up to this
    instant.
    """

    def __init__(self) -> None:
        self.tables: defaultdict[str, TableMaxima] = defaultdict(TableMaxima)

    def finished(self, now: int, job: Update) -> None:
        """The job ends now."""
        task = job.task
        seen = self.tables[task.name]
        freshness = job.loaded_from
        if now - freshness > seen.staleness_max_us:
            seen.staleness_max_us = now - freshness
        lag_us = task.intake.trailing_edge(now) - freshness
        if lag_us > seen.lag_max_us:
            seen.lag_max_us = lag_us
        if lag_us > task.period_us:
            seen.behind_at = now
        seen.jobs += 1
        if now > job.deadline:
            seen.misses += 1

    def ended(self, end: int, kernel: Kernel) -> None:
        """The run is over."""
        for task in tables_of(kernel):
            seen = self.tables[task.name]
            seen.staleness_max_us = max(seen.staleness_max_us, end - task.freshness)
            seen.lag_max_us = max(seen.lag_max_us, task.intake.trailing_edge(end) - task.freshness)
            seen.misses += sum(deadline < end for deadline in task.rule.unfinished_deadlines())
