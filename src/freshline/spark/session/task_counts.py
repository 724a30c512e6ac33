"""How many tasks the jobs of a table run at once, as Spark saw them last."""

from __future__ import annotations

from collections import Counter
from typing import Final

from pyspark import StatusTracker
from pyspark.sql import SparkSession

# A look takes some milliseconds, so the first runs of a table are looked at, and then one in so many.
_FIRST: Final = 3
_EVERY: Final = 50


class TaskCounts:
    """The tasks at once by table. Each track looks at its own jobs."""

    def __init__(self) -> None:
        self._tasks: dict[str, int] = {}
        self._runs: Counter[str] = Counter()
        self._newest: dict[str, int] = {}  # by group of jobs: the last one looked at

    def of(self, session: SparkSession, table: str) -> int:
        """The most tasks that the last job of this thread, or an earlier one of its table, ran at once.

        It is called after each job of the table, and gives 0 if that is not known.
        """
        self._runs[table] += 1
        if self._runs[table] <= _FIRST or self._runs[table] % _EVERY == 0:
            context = session.sparkContext
            group = context.getLocalProperty("spark.jobGroup.id")
            found = 0 if group is None else self._look(context.statusTracker(), group)
            if found:
                self._tasks[table] = max(found, self._tasks.get(table, 0))
        return min(self._tasks.get(table, 0), session.sparkContext.defaultParallelism)

    def _look(self, tracker: StatusTracker, group: str) -> int:
        after = self._newest.get(group, -1)
        jobs = [job for job in tracker.getJobIdsForGroup(group) if job > after]
        self._newest[group] = max(jobs, default=after)
        return max((_tasks_at_once(tracker, job) for job in jobs), default=0)


def _tasks_at_once(tracker: StatusTracker, job: int) -> int:
    """Stages before the last may run beside each other, as both sides of a join do."""
    known = tracker.getJobInfo(job)
    if known is None:
        return 0
    stages = [tracker.getStageInfo(stage) for stage in sorted(known.stageIds)]
    tasks = [stage.numTasks for stage in stages if stage is not None]
    return max(sum(tasks[:-1]), tasks[-1]) if tasks else 0
