"""The next job of a table, as far as it can be foreseen."""

from __future__ import annotations

from dataclasses import dataclass

from freshline.kernel.core.task import READY, RUNNING, WAITING
from freshline.kernel.core.timers import NEVER
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.tables.intake import DerivedIntake, FileIntake
from freshline.kernel.tables.release import PeriodicRelease
from freshline.kernel.tables.task import TableTask


@dataclass(frozen=True, slots=True)
class ExpectedJob:
    """A table's expected next job: released between two instants, due by a third.

    It can start at `ready`, when it is released and the table's previous job has ended.
    """

    task: TableTask
    earliest: int
    latest: int
    ready: int
    due: int
    # When the first file comes that is not there yet.
    file_earliest: int = NEVER
    file_latest: int = NEVER
    pending: int = 0  # files that are there, beyond the one that this job loads


def foresee(
    task: TableTask, now: int, free_at: int, extra: bool = False, batch: int = 0
) -> ExpectedJob | None:
    """The next job of a table, or None if none is expected; its running job ends by `free_at`.

    `extra`: it is a recovery job, after which the next need not keep a distance; `batch`: it starts now
    and does that many updates.
    """
    rule = task.rule
    if isinstance(rule, PeriodicRelease):
        return _periodic(task, rule, now, free_at)
    assert isinstance(rule, AdaptiveRelease)
    if task.state in (READY, WAITING) and not batch:
        return _released(task, rule, now)
    earliest, latest = (now, free_at) if extra else (rule.next_from_earliest, rule.next_from)
    if isinstance(task.intake, FileIntake):
        file = rule.next_arrival(now) or (NEVER, NEVER)
        pending = max(0, len(task.intake.pending) - batch)
        return _loading(now, task, file, pending, earliest, latest, free_at)
    if free_at > now and task.intake.trailing_edge(now) > loaded_to(task, batch):
        # Released when the job ends, but dated back to that job's deadline: rule (4).
        return ExpectedJob(task, earliest, latest, max(latest, free_at), earliest + task.period_us)
    return None


def loaded_to(task: TableTask, batch: int) -> int:
    """How far the running job, or one of that many updates, loads a derived table."""
    if task.job is not None:
        return task.job.loaded_to
    assert isinstance(task.intake, DerivedIntake)
    return task.intake.reach(task.freshness, batch * task.period_us)


def next_release(coming: ExpectedJob) -> tuple[int, int]:
    """The earliest and latest release of the job after one; earlier while the table is in recovery mode."""
    task = coming.task
    return coming.earliest + task.period_now_us, coming.latest + task.period_us


def following(coming: ExpectedJob, now: int, end: int, more: bool) -> ExpectedJob | None:
    """The job after one that ends at `end` at the latest.

    A derived table has none until a source advances, unless there may be `more` than one update of work.
    """
    task = coming.task
    earliest, latest = next_release(coming)
    if more or isinstance(task.rule, PeriodicRelease):
        return ExpectedJob(task, earliest, latest, max(latest, end), earliest + task.period_us)
    file = (coming.file_earliest, coming.file_latest)
    return _loading(now, task, file, coming.pending, earliest, latest, end)


def _periodic(task: TableTask, rule: PeriodicRelease, now: int, free_at: int) -> ExpectedJob:
    if task.state == READY:
        release = task.release
    elif task.state == RUNNING:
        release = task.release + task.period_us
    else:
        release = rule.next_release(now)
    return ExpectedJob(task, release, release, max(release, free_at, now), release + task.period_us)


def _released(task: TableTask, rule: AdaptiveRelease, now: int) -> ExpectedJob:
    release = task.release
    ready = max(now, release)
    # A table does not make up for what it missed while it was late.
    due = ready + task.period_us if rule.forgiven else task.deadline
    if not isinstance(task.intake, FileIntake):
        return ExpectedJob(task, release, release, ready, due)
    file = rule.next_arrival(now) or (NEVER, NEVER)
    pending = len(task.intake.pending) - 1
    if not pending:
        due = _sooner(task, ready, due, file[0])
    return ExpectedJob(task, release, release, ready, due, *file, pending)


def _loading(
    now: int,
    task: TableTask,
    file: tuple[int, int],
    pending: int,
    from_earliest: int,
    from_latest: int,
    end_before: int,
) -> ExpectedJob | None:
    """The job that loads the next file, not released before the previous job's period is over.

    `file` is when the next file comes, `pending` how many are there.
    """
    period_us = task.period_us
    if pending:
        ready = max(from_latest, end_before)
        return ExpectedJob(
            task, from_earliest, from_latest, ready, from_earliest + period_us, *file, pending - 1
        )
    if file[0] >= NEVER:
        return None
    earliest, latest = max(now, file[0], from_earliest), max(file[1], from_latest)
    ready = max(latest, end_before)
    file_after = file[0] + period_us
    due = _sooner(task, ready, earliest + period_us, file_after)
    return ExpectedJob(task, earliest, latest, ready, due, file_after, file[1] + period_us)


def _sooner(task: TableTask, ready: int, due: int, file_after: int) -> int:
    """When a job must end: at its deadline, or at the next file, with which its lag would exceed a period.

    If it cannot meet the latter, only the deadline counts.
    """
    return file_after if ready + task.worst_case_us <= file_after < due else due


def of_source(task: TableTask, earliest: int, latest: int) -> ExpectedJob:
    """A derived table's job, released when its sources have advanced: at any instant up to `latest`."""
    latest = max(earliest, latest)
    return ExpectedJob(task, earliest, latest, latest, earliest + task.period_us)
