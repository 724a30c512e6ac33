"""Threads that run jobs, one a track."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator
from typing import Any

from freshline.base.clock import Clock, clock
from freshline.kernel.core.job import Job
from freshline.live.loop.kinds import Kinds, Worker
from freshline.live.loop.messages import JobEnded, JobPutAside

# How often a close checks whether running jobs are abandoned.
_LOOK_EVERY_S = 0.1


# The rest of a job: each `next` does one part.
Parts = Generator[Any, None, object]


class Tracks:
    """A thread for each track, for jobs of every kind. It posts the end or the pause of each job."""

    def __init__(
        self, count: int, kinds: Kinds, post: Callable[[JobEnded | JobPutAside], None], now: Clock = clock
    ) -> None:
        self._kinds = kinds
        self._post = post
        self._clock = now
        self._inboxes: list[queue.SimpleQueue[Job | None]] = [queue.SimpleQueue() for _ in range(count)]
        self._to_pause: list[Job | None] = [None] * count
        self._abandoned = False
        self._hurry_until: float | None = None
        self._busy: set[int] = set()
        self._threads = [
            threading.Thread(target=self._serve, args=(track,), name=f"track-{track}", daemon=True)
            for track in range(count)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def busy(self) -> int:
        """The number of tracks with a job. Any thread may call it."""
        return len(self._busy)

    @property
    def idle(self) -> int:
        """The number of tracks without one. Any thread may call it."""
        return len(self._threads) - len(self._busy)

    def start(self, job: Job) -> None:
        assert type(job) in self._kinds, f"no worker for {job!r}"
        self._busy.add(job.track)
        self._inboxes[job.track].put(job)

    def pause(self, job: Job) -> None:
        """Pauses a started job after its current part, unless it ends before."""
        self._to_pause[job.track] = job

    def cancel(self, job: Job) -> None:
        """Ends a started job without effect, unless it ends before."""
        self._kinds[type(job)].cancel(job)

    def abandon(self) -> None:
        """Stops waiting for running jobs. It takes no lock, so a signal's handler may call it."""
        self._abandoned = True

    def hurry(self, timeout_s: float) -> None:
        """Stops waiting for running jobs after this time. A signal's handler may call it too."""
        self._hurry_until = time.monotonic() + timeout_s

    def close(self, timeout_s: float) -> bool:
        """Waits for running jobs until a timeout or `abandon`; returns whether all have ended."""
        for inbox in self._inboxes:
            inbox.put(None)
        return self._join(timeout_s, self._is_over)

    def _is_over(self) -> bool:
        until = self._hurry_until
        return self._abandoned or (until is not None and time.monotonic() >= until)

    def finish_cancelled(self, timeout_s: float) -> None:
        """Waits for jobs that were cancelled outside, abandoned ones too."""
        self._join(timeout_s, lambda: False)

    def _join(self, timeout_s: float, is_over: Callable[[], bool]) -> bool:
        give_up_at = time.monotonic() + timeout_s
        for thread in self._threads:
            while thread.is_alive() and not is_over() and (left_s := give_up_at - time.monotonic()) > 0:
                thread.join(min(left_s, _LOOK_EVERY_S))
        return not any(thread.is_alive() for thread in self._threads)

    def _serve(self, track: int) -> None:
        workers: dict[type[Job], Worker] = {}
        begun: dict[Job, Parts] = {}  # paused jobs
        while (job := self._inboxes[track].get()) is not None:
            kind = self._kinds[type(job)]
            try:
                if type(job) not in workers:
                    workers[type(job)] = kind.worker(track)
                outcome = begun.pop(job, None) or workers[type(job)].run(job)
                if isinstance(outcome, Generator):
                    over, done = self._run_parts(job, outcome)
                    if not over:
                        begun[job] = outcome
                        self._post(JobPutAside(job))
                        continue
                    outcome = done
            except Exception as error:  # the track's boundary: every error is reported with its reason
                outcome = error
            self._busy.discard(track)  # before the post: the next job may start at once
            self._post(JobEnded(job, outcome, self._clock(), kind.judge))
        for parts in begun.values():
            parts.close()

    def _run_parts(self, job: Job, parts: Parts) -> tuple[bool, object]:
        """Runs parts; returns (True, result) at the job's end, or (False, None) if it is to be paused."""
        while self._to_pause[job.track] is not job:
            try:
                next(parts)
            except StopIteration as end:
                return True, end.value
        self._to_pause[job.track] = None
        return False, None
