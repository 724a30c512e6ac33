"""A certificate: a schedule of all known and coming jobs of healthy tables in which none is late.

It reaches, at worst-case costs, to the first instant at which a track is free and nothing waits. Jobs start
in the order in which they started here, whatever those before really cost and whenever they are really
released: then none starts later than here (docs/aus-slack.md), so that none is late.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from freshline.kernel.task import READY, RUNNING, WAITING
from freshline.recovery.modes import AdaptiveRelease
from freshline.tables.intake import DerivedIntake, FileIntake
from freshline.tables.release import PeriodicRelease
from freshline.tables.task import TableTask

# Near U = m there may be no instant without work in any time: after so many jobs a table it is given up.
_JOBS_PER_TABLE: Final = 8
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Certificate:
    """The order in which jobs start, each with the instant from which it can; and the end of it."""

    order: tuple[tuple[TableTask, int], ...]
    end: int


@dataclass(frozen=True, slots=True)
class Coming:
    """A table's next job as far as it can be foreseen: released between two instants, due by a third.

    It can start from `ready` on, when it is released and the table's job before it has ended.
    """

    task: TableTask
    earliest: int
    latest: int
    ready: int
    due: int
    # When the file after those that are there comes.
    file_earliest: int = _NEVER
    file_latest: int = _NEVER
    pending: int = 0  # files that are there beyond the one that this job loads


def foresee(task: TableTask, now: int, free_at: int, extra: bool = False, batch: int = 0) -> Coming | None:
    """The next job of a table; a job of its own that runs ends by `free_at`. None where none is in sight.

    `extra`: it is a recovery job, after which the next need not keep a distance; `batch`: it starts just now
    and does so many updates.
    """
    rule = task.rule
    if isinstance(rule, PeriodicRelease):
        return _periodic(task, rule, now, free_at)
    assert isinstance(rule, AdaptiveRelease)
    if task.state in (READY, WAITING) and not batch:
        return _released(task, rule, now)
    earliest, latest = (now, free_at) if extra else (rule.next_from_earliest, rule.next_from)
    if isinstance(task.intake, FileIntake):
        file = rule.next_arrival(now) or (_NEVER, _NEVER)
        pending = max(0, len(task.intake.pending) - batch)
        return _loading(now, task, file, pending, earliest, latest, free_at)
    if free_at > now and task.intake.trailing_edge(now) > loaded_to(task, batch):
        # Released when the job ends, and set back to that one's deadline: rule (4).
        return Coming(task, earliest, latest, max(latest, free_at), earliest + task.period_us)
    return None


def loaded_to(task: TableTask, batch: int) -> int:
    """How far a derived table will be loaded: by the job that runs, or one of so many updates."""
    if task.job is not None:
        return task.job.loaded_to
    assert isinstance(task.intake, DerivedIntake)
    return task.intake.reach(task.freshness, batch * task.period_us)


def next_release(coming: Coming) -> tuple[int, int]:
    """From when on the job after one may be released: sooner, as long as the table is in recovery mode."""
    task = coming.task
    return coming.earliest + task.period_now_us, coming.latest + task.period_us


def following(coming: Coming, now: int, end: int, more: bool) -> Coming | None:
    """The job after one that ends at `end` at the latest.

    Of a derived table none before a source moves, unless there may be `more` than one update's worth.
    """
    task = coming.task
    earliest, latest = next_release(coming)
    if more or isinstance(task.rule, PeriodicRelease):
        return Coming(task, earliest, latest, max(latest, end), earliest + task.period_us)
    file = (coming.file_earliest, coming.file_latest)
    return _loading(now, task, file, coming.pending, earliest, latest, end)


def _periodic(task: TableTask, rule: PeriodicRelease, now: int, free_at: int) -> Coming:
    if task.state == READY:
        release = task.release
    elif task.state == RUNNING:
        release = task.release + task.period_us
    else:
        release = rule.next_release(now)
    return Coming(task, release, release, max(release, free_at, now), release + task.period_us)


def _released(task: TableTask, rule: AdaptiveRelease, now: int) -> Coming:
    release = task.release
    ready = max(now, release)
    # What a table missed while it was late is not made up for.
    due = ready + task.period_us if rule.forgiven else task.deadline
    if not isinstance(task.intake, FileIntake):
        return Coming(task, release, release, ready, due)
    file = rule.next_arrival(now) or (_NEVER, _NEVER)
    pending = len(task.intake.pending) - 1
    if not pending:
        due = _sooner(task, ready, due, file[0])
    return Coming(task, release, release, ready, due, *file, pending)


def _loading(
    now: int,
    task: TableTask,
    file: tuple[int, int],
    pending: int,
    from_earliest: int,
    from_latest: int,
    end_before: int,
) -> Coming | None:
    """The job that loads the next file, not released before the period of the job ahead is over.

    `file` is when the next file comes that is not there yet, `pending` how many are there.
    """
    period_us = task.period_us
    if pending:
        ready = max(from_latest, end_before)
        return Coming(task, from_earliest, from_latest, ready, from_earliest + period_us, *file, pending - 1)
    if file[0] >= _NEVER:
        return None
    earliest, latest = max(now, file[0], from_earliest), max(file[1], from_latest)
    ready = max(latest, end_before)
    file_after = file[0] + period_us
    due = _sooner(task, ready, earliest + period_us, file_after)
    return Coming(task, earliest, latest, ready, due, file_after, file[1] + period_us)


def _sooner(task: TableTask, ready: int, due: int, file_after: int) -> int:
    """By when a job must end: its deadline, or the next file, with which its lag would exceed a period.

    Where that cannot be helped the deadline alone counts.
    """
    return file_after if ready + task.worst_case_us <= file_after < due else due


def _of_source(task: TableTask, earliest: int, latest: int) -> Coming:
    """A derived table's job, released when its sources have moved: by `latest`, but maybe at any moment."""
    latest = max(earliest, latest)
    return Coming(task, earliest, latest, latest, earliest + task.period_us)


class Forecast:
    """Non-preemptive EDF, forward from now, of the tables whose bounds are asserted."""

    def __init__(
        self,
        now: int,
        tasks: Iterable[TableTask],
        free_at: Iterable[int],
        ends: Mapping[int, int],
        extras_end: int,
        extras: Collection[int],
        starting: Mapping[int, int],
    ) -> None:
        """`free_at` is when each track is free at the latest, `ends` the same by the task that runs there.

        `extras` are the tasks whose recovery jobs run ahead of others, until `extras_end`; `starting` those
        of them that start now, and how many updates they do.
        """
        self._now = now
        self._extras_end = extras_end
        self._free = list(free_at)
        heapify(self._free)
        self._releases: list[tuple[int, int, Coming]] = []  # by when they can start
        self._ready: list[tuple[int, int, int, Coming]] = []  # of equal deadlines the longest: they pack best
        self._order: list[tuple[TableTask, int]] = []
        self._members = {task.place: task for task in tasks}
        self._in_sight: set[int] = set()
        self._ends = dict(ends)  # by task: when its last job ends that has started
        # By task: the earliest and the latest instant from which its next job may be released.
        self._next_from: dict[int, tuple[int, int]] = dict.fromkeys(extras, (now, now))
        # By task: how far it may be loaded at most by the jobs that have started, and how far at least.
        self._loaded_most: dict[int, int] = dict.fromkeys(starting, now)
        self._loaded_least: dict[int, int] = {}
        for task in self._members.values():
            index = task.place
            coming = foresee(task, now, ends.get(index, now), index in extras, starting.get(index, 0))
            if coming is not None:
                self._expect(coming)
        for index, end in ends.items():
            if index in self._members:
                self._moved(self._members[index], now, end)

    def certify(self) -> Certificate | None:
        """The schedule, if every job in it is in time and it comes to an end."""
        jobs_max = _JOBS_PER_TABLE * (len(self._members) + 8)
        while len(self._order) <= jobs_max:
            now = self._free[0]
            while self._releases and self._releases[0][0] <= now:
                _, index, coming = heappop(self._releases)
                heappush(self._ready, (coming.due, -coming.task.worst_case_us, index, coming))
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
        """Starts the job that is due first; whether it will be in time."""
        due, _, index, coming = heappop(self._ready)
        sources_end = self._sources_end(coming.task)
        if sources_end > now:  # it is to see what they are loading, and maybe is released only then
            latest = max(coming.latest, sources_end)
            then = replace(coming, latest=latest, ready=sources_end)
            heappush(self._releases, (sources_end, index, then))
            return True
        end = now + coming.task.worst_case_us
        if end > due:
            return False
        heapreplace(self._free, end)
        self._order.append((coming.task, coming.ready))
        self._in_sight.discard(index)
        self._ends[index] = end
        self._next_from[index] = next_release(coming)
        after = following(coming, self._now, end, self._leaves_more(coming.task, now))
        if after is not None:
            self._expect(after)
        self._moved(coming.task, coming.earliest, end)
        return True

    def _leaves_more(self, task: TableTask, start: int) -> bool:
        """Whether a derived table's job that starts then may leave something for the next one.

        Its sources may have moved by more than an update loads: each holds at most what there was when its
        last job started.
        """
        intake, index = task.intake, task.place
        self._loaded_most[index] = start
        if not isinstance(task.rule, AdaptiveRelease) or not isinstance(intake, DerivedIntake):
            return False
        least = self._loaded_least.get(index, _loaded(task))
        reach = intake.reach(least, task.period_us)
        self._loaded_least[index] = max(least, min(intake.trailing_edge(self._now), reach))
        return self._may_load_beyond(intake, reach)

    def _may_load_beyond(self, intake: DerivedIntake, instant: int) -> bool:
        """Whether all sources may be loaded further than that."""
        return all(
            self._loaded_most.get(source.place, _loaded_most(source)) > instant for source in intake.sources
        )

    def _expect(self, coming: Coming) -> None:
        self._in_sight.add(coming.task.place)
        heappush(self._releases, (coming.ready, coming.task.place, coming))

    def _sources_end(self, task: TableTask) -> int:
        """When the jobs of a derived table's sources end that have started."""
        if not isinstance(task.rule, AdaptiveRelease) or not isinstance(task.intake, DerivedIntake):
            return 0
        return max(self._ends.get(source.place, 0) for source in task.intake.sources)

    def _moved(self, source: TableTask, not_before: int, at: int) -> None:
        """A source is updated by then: what reads it has a job, unless one is in sight, which will see it.

        `not_before`: the source's own job cannot be released sooner.
        """
        for task in source.dependents:
            index = task.place
            if index in self._members and index not in self._in_sight:
                rule, intake = task.rule, task.intake
                assert isinstance(rule, AdaptiveRelease)
                assert isinstance(intake, DerivedIntake)
                if not self._may_load_beyond(intake, self._loaded_least.get(index, _loaded(task))):
                    continue  # another source holds it back
                earliest, latest = self._next_from.get(index, (rule.next_from_earliest, rule.next_from))
                end_before = self._ends.get(index, 0)
                if end_before <= earliest:  # otherwise rule (4) may set it back to there
                    earliest = max(self._now, earliest, not_before)
                self._expect(_of_source(task, earliest, max(latest, at, end_before)))


def _loaded(task: TableTask) -> int:
    """How far a table is loaded at least, by the job that runs if there is one."""
    return task.freshness if task.job is None else task.job.loaded_to


def _loaded_most(task: TableTask) -> int:
    """How far a table may be loaded, as the job that runs may jump."""
    return task.freshness if task.job is None else task.job.jump_to


def can_be_foreseen(tasks: Iterable[TableTask]) -> bool:
    """Whether all jobs of a pool can be: every table is bounded, and no table reads one of another pool."""
    members = list(tasks)
    return all(
        isinstance(task.rule, PeriodicRelease)
        or (
            isinstance(task.rule, AdaptiveRelease)
            and not (
                isinstance(task.intake, DerivedIntake)
                and any(source.pool is not task.pool for source in task.intake.sources)
            )
        )
        for task in members
    )
