"""Judges the end of an update: its table's new freshness, or the time of the retry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock

from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.tables.events import UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.live.loop.failures import FailureStreak
from freshline.live.loop.messages import JobEnded
from freshline.live.loop.run_notes import RunNotes
from freshline.live.tables.observation import LiveObservation
from freshline.spark.errors import SparkEnded, sentence
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.delta.commits import TableTaken


class FailureCounts:
    """By table, the failures since its last success.

    The driver's thread writes and tracks read them; hence the lock.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._troubles: dict[str, FailureStreak] = {}

    def attempts(self, table: str) -> int:
        """The failures of the table's present job."""
        with self._lock:
            trouble = self._troubles.get(table)
            return 0 if trouble is None else trouble.attempts

    def reason(self, table: str) -> str | None:
        with self._lock:
            trouble = self._troubles.get(table)
            return None if trouble is None else trouble.reason or None

    def failed(self, table: str, reason: str, now: int) -> int:
        """Counts a failure; returns the time of the retry."""
        with self._lock:
            trouble = self._troubles.setdefault(table, FailureStreak())
            trouble.attempts += 1
            trouble.reason = reason
            return trouble.retry_at(now)

    def over(self, table: str) -> bool:
        """Ends the table's failures after a success; returns whether there were any."""
        with self._lock:
            return self._troubles.pop(table, None) is not None


class LoadFailures:
    """Handles failures of jobs of any kind that write tables. Only the driver's thread uses it."""

    def __init__(self, troubles: FailureCounts, notes: RunNotes, stop: Callable[[str], None]) -> None:
        self._troubles = troubles
        self._notes = notes
        self._stop = stop  # for errors that no retry helps with

    def failed(self, name: str, error: BaseException, now: int) -> int:
        """Handles a failed job of that table or step; returns the time of the retry."""
        reason = sentence(error)
        retry_at = self._troubles.failed(name, reason, now)
        if isinstance(error, TableTaken):
            self._stop(f"another runner wrote to table {name}: this one stops")
        if isinstance(error, SparkEnded):
            self._stop(str(error))
        self._notes.note(now, f"{name}: attempt {self._troubles.attempts(name)} failed: {reason}")
        return retry_at

    def over(self, name: str) -> bool:
        """Ends the failures after a success; returns whether there were any."""
        return self._troubles.over(name)


class UpdateJudge:
    """Judges the ends of updates. Only the driver's thread uses it."""

    def __init__(self, observation: LiveObservation, failures: LoadFailures, notes: RunNotes) -> None:
        self._observation = observation
        self._failures = failures
        self._notes = notes
        self.on_loaded: Callable[[str, Sequence[str]], None] | None = None  # (table, names of files)
        self.on_discarded: Callable[[str, int], None] | None = None  # (table, number of files)

    def judge(self, ended: JobEnded, now: int) -> Event:
        job: Update = ended.job
        name, outcome = job.task.name, ended.outcome
        self._observation.ending(job.task, now)  # before the kernel gets the end
        if isinstance(outcome, BaseException):
            return self._failed(job, outcome, now)
        self._observation.succeeded(job.task, now, after_failures=self._failures.over(name))
        if self.on_loaded is not None and job.files:
            self.on_loaded(name, [str(file.name) for file in job.files])
        if outcome is None:  # its files were quarantined; the table's freshness stays
            return UpdateFinished(job, job.loaded_from)
        assert isinstance(outcome, LoadResult)
        self._notes.took(name, ended.at - job.start, job.worst_case_us, ended.at)
        self._observation.committed(job, outcome, now, ended.at)
        self._observation.rows_came(name, job.loaded_from, outcome.freshness, outcome.rows)
        if self.on_discarded is not None and outcome.discarded:
            self.on_discarded(name, outcome.discarded)
        return UpdateFinished(job, outcome.freshness)

    def _failed(self, job: Update, error: BaseException, now: int) -> Event:
        self._observation.failed(job.task.name)
        return JobFailed(job, self._failures.failed(job.task.name, error, now))
