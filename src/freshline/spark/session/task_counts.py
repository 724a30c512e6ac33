"""How many tasks the jobs of a table run at once, as Spark saw them last."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

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

    def begin(self, session: SparkSession) -> None:
        """Jobs of this thread's group so far are not counted: another run in this Spark may have had them."""
        group = _group(session)
        if group is not None:
            self._newest[group] = max(_Jobs(session).of(group), default=-1)

    def of(self, session: SparkSession, table: str) -> int:
        """The most tasks that the last job of this thread, or an earlier one of its table, ran at once.

        It is called after each job of the table, and gives 0 if that is not known.
        """
        self._runs[table] += 1
        if self._runs[table] <= _FIRST or self._runs[table] % _EVERY == 0:
            group = _group(session)
            found = 0 if group is None else self._look(_Jobs(session), group)
            if found:
                self._tasks[table] = max(found, self._tasks.get(table, 0))
        return min(self._tasks.get(table, 0), session.sparkContext.defaultParallelism)

    def _look(self, jobs: _Jobs, group: str) -> int:
        after = self._newest.get(group, -1)
        new = [job for job in jobs.of(group) if job > after]
        self._newest[group] = max(new, default=after)
        return max(map(jobs.tasks_at_once, new), default=0)


def _group(session: SparkSession) -> str | None:
    return session.sparkContext.getLocalProperty("spark.jobGroup.id")


class _Jobs:
    """The jobs that Spark knows of. PySpark's own tracker needs a call for each number in a list."""

    def __init__(self, session: SparkSession) -> None:
        self._tracker: Any = session.sparkContext.statusTracker()._jtracker
        assert session._jvm is not None
        self._text: Any = session._jvm.java.util.Arrays.toString

    def of(self, group: str) -> list[int]:
        return self._numbers(self._tracker.getJobIdsForGroup(group))

    def tasks_at_once(self, job: int) -> int:
        """Stages before the last may run beside each other, as both sides of a join do."""
        known = self._tracker.getJobInfo(job)
        if known is None:
            return 0
        stages = map(self._tracker.getStageInfo, sorted(self._numbers(known.stageIds())))
        tasks = [int(stage.numTasks()) for stage in stages if stage is not None]
        return max(sum(tasks[:-1]), tasks[-1]) if tasks else 0

    def _numbers(self, array: Any) -> list[int]:
        return [int(number) for number in str(self._text(array)).strip("[]").split(",") if number]
