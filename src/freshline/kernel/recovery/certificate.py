"""A certificate: a schedule of all known and expected jobs of healthy tables in which none is late.

It assumes worst-case costs and ends at the first instant with a free track and no waiting job. Jobs then
start in its order, whatever earlier ones cost and whenever they are released: so none starts later than in
the schedule (docs/aus-slack.md), and none is late.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from freshline.kernel.recovery.expected_job import ExpectedJob, following, foresee, next_release, of_source
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.tables.intake import DerivedIntake
from freshline.kernel.tables.release import PeriodicRelease
from freshline.kernel.tables.source import Source
from freshline.kernel.tables.task import TableTask

# Near U = m there may never be an instant without work: give up after this many jobs per table.
_JOBS_PER_TABLE: Final = 8


@dataclass(frozen=True, slots=True)
class Certificate:
    """The order in which jobs start, each with its earliest start; and the end of the schedule."""

    order: tuple[tuple[TableTask, int], ...]
    end: int


class Forecast:
    """Non-preemptive EDF, simulated from now on, of the tables with asserted bounds."""

    def __init__(
        self,
        now: int,
        tasks: Iterable[TableTask],
        free_at: Iterable[int],
        ends: Mapping[str, int],
        extras_end: int,
        extras: Collection[str],
        starting: Mapping[str, int],
    ) -> None:
        """`free_at` is when each track is free at the latest, `ends` the same by its running task.

        `extras` are the tasks with recovery jobs that run ahead of others, until `extras_end`; `starting` are
        those that start now, with their number of updates.
        """
        self._now = now
        self._extras_end = extras_end
        self._free = list(free_at)
        heapify(self._free)
        self._releases: list[tuple[int, int, ExpectedJob]] = []  # by their earliest start
        self._ready: list[
            tuple[int, int, int, ExpectedJob]
        ] = []  # of equal deadlines the longest first, which packs best
        self._order: list[tuple[TableTask, int]] = []
        self._members = {task.name: task for task in tasks}
        self._in_sight: set[str] = set()
        self._ends = dict(ends)  # by task: the end of its last started job
        # By task: the earliest and the latest instant at which its next job may be released.
        self._next_from: dict[str, tuple[int, int]] = dict.fromkeys(extras, (now, now))
        # By task: how far its started jobs load it, at most and at least.
        self._loaded_most: dict[str, int] = dict.fromkeys(starting, now)
        self._loaded_least: dict[str, int] = {}
        for task in self._members.values():
            name = task.name
            coming = foresee(task, now, ends.get(name, now), name in extras, starting.get(name, 0))
            if coming is not None:
                self._expect(coming)
        for name, end in ends.items():
            if name in self._members:
                self._moved(self._members[name], now, end)

    def certify(self) -> Certificate | None:
        """The schedule, if every job in it is in time and it has an end."""
        jobs_max = _JOBS_PER_TABLE * (len(self._members) + 8)
        while len(self._order) <= jobs_max:
            now = self._free[0]
            while self._releases and self._releases[0][0] <= now:
                _, place, coming = heappop(self._releases)
                heappush(self._ready, (coming.due, -coming.task.worst_case_us, place, coming))
            if self._ready:
                if not self._start(now):
                    return None
                continue
            if now >= self._extras_end and all(coming.earliest > now for _, _, coming in self._releases):
                return Certificate(tuple(self._order), now)
            # The track waits: for the next job, or for the recovery jobs to end.
            until = self._releases[0][0] if self._releases else self._extras_end
            if now < self._extras_end:
                until = min(until, self._extras_end)
            heapreplace(self._free, until)
        return None

    def _start(self, now: int) -> bool:
        """Starts the job that is due first; returns whether it will be in time."""
        due, _, place, coming = heappop(self._ready)
        sources_end = self._sources_end(coming.task)
        if sources_end > now:  # it waits for their load, and may be released only then
            latest = max(coming.latest, sources_end)
            then = replace(coming, latest=latest, ready=sources_end)
            heappush(self._releases, (sources_end, place, then))
            return True
        end = now + coming.task.worst_case_us
        if end > due:
            return False
        heapreplace(self._free, end)
        self._order.append((coming.task, coming.ready))
        name = coming.task.name
        self._in_sight.discard(name)
        self._ends[name] = end
        self._next_from[name] = next_release(coming)
        after = following(coming, self._now, end, self._leaves_more(coming.task, now))
        if after is not None:
            self._expect(after)
        self._moved(coming.task, coming.earliest, end)
        return True

    def _leaves_more(self, task: TableTask, start: int) -> bool:
        """Whether a derived table's job that starts then may leave work for the next one.

        Its sources may have advanced by more than one update loads: each holds at most what there was when
        its last job started.
        """
        intake, name = task.intake, task.name
        self._loaded_most[name] = start
        if not isinstance(task.rule, AdaptiveRelease) or not isinstance(intake, DerivedIntake):
            return False
        least = self._loaded_least.get(name, _loaded(task))
        reach = intake.reach(least, task.period_us)
        self._loaded_least[name] = max(least, min(intake.trailing_edge(self._now), reach))
        return self._may_load_beyond(intake, reach)

    def _may_load_beyond(self, intake: DerivedIntake, instant: int) -> bool:
        """Whether all sources may be loaded further than that."""
        return all(
            self._loaded_most.get(source.name, _loaded_most(source)) > instant for source in intake.sources
        )

    def _expect(self, coming: ExpectedJob) -> None:
        self._in_sight.add(coming.task.name)
        heappush(self._releases, (coming.ready, coming.task.place, coming))

    def _sources_end(self, task: TableTask) -> int:
        """When the started jobs of a derived table's sources end."""
        if not isinstance(task.rule, AdaptiveRelease) or not isinstance(task.intake, DerivedIntake):
            return 0
        return max(self._ends.get(source.name, 0) for source in task.intake.sources)

    def _moved(self, source: TableTask, not_before: int, at: int) -> None:
        """A source is updated by then: each reader gets a job, unless an expected one will load that anyway.

        `not_before`: the earliest release of the source's own job.
        """
        for task in source.dependents:
            name = task.name
            if name in self._members and name not in self._in_sight:
                assert isinstance(task, TableTask)
                rule, intake = task.rule, task.intake
                assert isinstance(rule, AdaptiveRelease)
                assert isinstance(intake, DerivedIntake)
                if not self._may_load_beyond(intake, self._loaded_least.get(name, _loaded(task))):
                    continue  # another source holds it back
                earliest, latest = self._next_from.get(name, (rule.next_from_earliest, rule.next_from))
                end_before = self._ends.get(name, 0)
                if end_before <= earliest:  # otherwise rule (4) may set it back to there
                    earliest = max(self._now, earliest, not_before)
                self._expect(of_source(task, earliest, max(latest, at, end_before)))


def _loaded(task: TableTask) -> int:
    """How far a table is loaded at least, counting its running job."""
    return task.freshness if task.job is None else task.job.loaded_to


def _loaded_most(source: Source) -> int:
    """How far a table is loaded at most, counting a jump of its running job."""
    job = source.job if isinstance(source, TableTask) else None
    return source.freshness if job is None else job.jump_to


def can_be_foreseen(tasks: Iterable[TableTask]) -> bool:
    """Whether all jobs of a pool can be foreseen: all tables have bounds and read no other pool's tables."""
    members = list(tasks)
    return all(
        isinstance(task.rule, PeriodicRelease)
        or (
            isinstance(task.rule, AdaptiveRelease)
            and not (
                isinstance(task.intake, DerivedIntake)
                and not all(
                    isinstance(source, TableTask) and source.pool is task.pool
                    for source in task.intake.sources
                )
            )
        )
        for task in members
    )
