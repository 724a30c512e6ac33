"""What derived tables still have to load when a run ends that was to load everything."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable

from freshline.definitions.duration import SECOND
from freshline.kernel.events import Failed
from freshline.kernel.kernel import Kernel
from freshline.kernel.task import IDLE, WAITING
from freshline.live.clock import clock
from freshline.live.driver import Ended, Judge
from freshline.live.tracks import Tracks
from freshline.live.trouble import ATTEMPTS_MAX
from freshline.tables.events import Finished
from freshline.tables.task import TableTask, tables_of
from freshline.tables.update import Update

_LOOK_EVERY_S = 0.1


def only_rest_is_left(kernel: Kernel) -> bool:
    """Whether no table has anything to load, but derived ones that wait for what makes a whole update."""
    return all(
        task.state == IDLE
        or (task.state == WAITING and not task.intake.backlogged(task.freshness, task.period_us))
        for task in tables_of(kernel)
    )


def load_rest(
    kernel: Kernel,
    order: Iterable[str],
    tracks: Callable[[Callable[[Update, object], None]], Tracks],
    judge: Judge,
    is_over: Callable[[], bool],
) -> bool:
    """Brings derived tables, sources first, up to their sources. Whether all jobs ended before it was over.

    A table's next release may be a day ahead, and nothing more comes until then. The kernel is not asked: its
    log is complete, and the next run finds the tables as they are.
    """
    ends: queue.SimpleQueue[object] = queue.SimpleQueue()
    running = tracks(lambda job, outcome: ends.put(outcome))
    tasks = {task.name: task for task in tables_of(kernel)}
    for name in order:
        task = tasks[name]
        attempts = 0
        while _is_behind(task) and attempts < ATTEMPTS_MAX and not is_over():
            attempts += 1
            job = _job(task, max(kernel.now, clock()))
            running.start(job)
            outcome = _wait(ends, is_over)
            if outcome is None:
                running.abandon()
                break
            now = max(kernel.now, clock())
            event = judge.judge(Ended(job, outcome, clock()), now)
            if isinstance(event, Finished):
                task.freshness, task.empty, task.state = event.freshness, False, IDLE
            elif isinstance(event, Failed):
                time.sleep((event.retry_at - now) / SECOND)
    return running.close(_LOOK_EVERY_S)


def _is_behind(task: TableTask) -> bool:
    return bool(task.intake.sources) and task.intake.stale(task.freshness)


def _job(task: TableTask, now: int) -> Update:
    """All there is, at once."""
    loaded_to, _, files = task.intake.claim(task, now, None)
    updates = 1 if task.empty else max(1, -(-(loaded_to - task.freshness) // task.period_us))
    task.jobs_started += 1
    deadline, track = now + task.period_us, task.pool.tracks_from
    return Update(
        task, task.jobs_started, now, deadline, now, track, task.freshness, loaded_to, files, updates
    )


def _wait(ends: queue.SimpleQueue[object], is_over: Callable[[], bool]) -> object | None:
    """How the job ended; None if that is of no interest any more."""
    while True:
        try:
            return ends.get(timeout=_LOOK_EVERY_S)
        except queue.Empty:
            if is_over():
                return None
