"""The kernel's invariants. Tests check them after every run; they cost too much for every instant."""

from __future__ import annotations

from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool


def validate(kernel: Kernel) -> None:
    """Raises AssertionError if the kernel's state is inconsistent."""
    assert not kernel.touched, "something was left undispatched"
    assert kernel.wake_at > kernel.now, "a timer is overdue"
    for task in kernel.tasks:
        task.validate(kernel.now)
    for pool in kernel.pools:
        _validate_pool(kernel, pool)


def _validate_pool(kernel: Kernel, pool: TrackPool) -> None:
    tracks = set(range(pool.tracks_from, pool.tracks_from + pool.tracks))
    assert set(pool.idle) | set(pool.running) == tracks
    assert len(pool.idle) + len(pool.running) == pool.tracks, "a track is idle and busy"
    pool.validate()
    ready = pool.order.ready()
    assert len(ready) == len(set(ready)), "a job is queued twice"
    expected = {entry for task in kernel.tasks if task.pool is pool for entry in task.queued()}
    assert set(ready) == expected, "the queue and the tasks disagree"
    if ready and not pool.order.idles:
        assert not pool.idle, "a track idles while a job is ready"
