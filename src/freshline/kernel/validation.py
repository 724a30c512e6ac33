"""The kernel's invariants. Tests check them after every run; they cost too much for every instant."""

from __future__ import annotations

from freshline.kernel.intake import FileIntake
from freshline.kernel.kernel import Kernel
from freshline.kernel.pool import Pool
from freshline.kernel.release import PeriodicRelease
from freshline.kernel.task import BACKED_OFF, IDLE, READY, RUNNING, WAITING, Task


def validate(kernel: Kernel) -> None:
    """Raises AssertionError where the state contradicts itself."""
    assert not kernel.touched, "something was left undispatched"
    assert kernel.wake_at > kernel.now, "a timer is overdue"
    for task in kernel.tasks:
        _validate_task(kernel, task)
    for pool in kernel.pools:
        _validate_pool(kernel, pool)


def _validate_task(kernel: Kernel, task: Task) -> None:
    edge = task.intake.trailing_edge(kernel.now)
    assert 0 <= task.freshness <= edge, f"{task!r} is fresher than its sources"
    assert edge <= kernel.now, f"{task!r} could load the future"
    assert (task.state == RUNNING) == (task.job is not None)
    assert not (task.empty and task.freshness), f"{task!r} is empty and has data"
    if task.state != IDLE:
        assert task.release < task.deadline <= task.release + task.period_us
    if task.state == WAITING:
        assert task.release > kernel.now
        assert task.intake.stale(task.freshness)
    if task.state == READY:
        assert task.release <= kernel.now
    job = task.job
    if job is not None:
        assert job.loaded_from == task.freshness <= job.loaded_to <= job.jump_to <= edge
        assert job.number == task.jobs_started
        assert job.start <= kernel.now
        assert task.pool.running[job.track] is job
    if isinstance(task.intake, FileIntake):
        assert task.intake.pending == sorted(task.intake.pending)
        if task.state == IDLE:
            assert not task.intake.pending, f"{task!r} has files and no job"
    if isinstance(task.rule, PeriodicRelease):
        assert task.state != WAITING
        assert task.rule.pending == 0 or task.state in (READY, RUNNING, BACKED_OFF)


def _validate_pool(kernel: Kernel, pool: Pool) -> None:
    tracks = set(range(pool.tracks_from, pool.tracks_from + pool.tracks))
    assert set(pool.idle) | set(pool.running) == tracks
    assert len(pool.idle) + len(pool.running) == pool.tracks, "a track is idle and busy"
    ready = pool.order.ready()
    assert len(ready) == len(set(ready)), "a job is queued twice"
    expected = {task for task in kernel.tasks if task.pool is pool and task.state == READY}
    assert set(ready) == expected, "the queue and the tasks disagree"
    if ready and not pool.order.idles:
        assert not pool.idle, "a track idles while a job is ready"
