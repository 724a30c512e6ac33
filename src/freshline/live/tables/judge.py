"""What the end of an update means: how fresh its table is now, or when it is tried again."""

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

    The driver's thread writes, tracks ask how often a job has failed before: hence the lock.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._troubles: dict[str, FailureStreak] = {}

    def attempts(self, table: str) -> int:
        """How often the table's present job has failed already."""
        with self._lock:
            trouble = self._troubles.get(table)
            return 0 if trouble is None else trouble.attempts

    def reason(self, table: str) -> str | None:
        """Why it failed last."""
        with self._lock:
            trouble = self._troubles.get(table)
            return None if trouble is None else trouble.reason or None

    def failed(self, table: str, reason: str, now: int) -> int:
        """Once more; when to try again."""
        with self._lock:
            trouble = self._troubles.setdefault(table, FailureStreak())
            trouble.attempts += 1
            trouble.reason = reason
            return trouble.retry_at(now)

    def over(self, table: str) -> bool:
        """The table's job has succeeded. Whether it had failed before."""
        with self._lock:
            return self._troubles.pop(table, None) is not None


class LoadFailures:
    """What failures of jobs that write tables mean, of whatever kind. The driver's thread alone asks it."""

    def __init__(self, troubles: FailureCounts, notes: RunNotes, stop: Callable[[str], None]) -> None:
        self._troubles = troubles
        self._notes = notes
        self._stop = stop  # for what no other attempt helps with

    def failed(self, name: str, error: BaseException, now: int) -> int:
        """A job of that table or step has failed; when to try again."""
        reason = sentence(error)
        retry_at = self._troubles.failed(name, reason, now)
        if isinstance(error, TableTaken):
            self._stop(f"another runner wrote to table {name}: this one stops")
        if isinstance(error, SparkEnded):
            self._stop(str(error))
        self._notes.note(now, f"{name}: attempt {self._troubles.attempts(name)} failed: {reason}")
        return retry_at

    def over(self, name: str) -> bool:
        """A job has succeeded. Whether it had failed before."""
        return self._troubles.over(name)


class UpdateJudge:
    """Judges how updates ended. The driver's thread alone asks it."""

    def __init__(self, observation: LiveObservation, failures: LoadFailures, notes: RunNotes) -> None:
        self._observation = observation
        self._failures = failures
        self._notes = notes
        self.on_loaded: Callable[[str, Sequence[str]], None] | None = None  # (table, names of files)
        # (table, from, to, rows)
        self.on_committed: Callable[[str, int, int, int], None] | None = None
        self.on_discarded: Callable[[str, int], None] | None = None  # (table, how many files)

    def judge(self, ended: JobEnded, now: int) -> Event:
        job: Update = ended.job
        name, outcome = job.task.name, ended.outcome
        self._observation.ending(job.task, now)  # before the kernel hears of the end
        if isinstance(outcome, BaseException):
            return self._failed(job, outcome, now)
        self._observation.succeeded(job.task, now, after_failures=self._failures.over(name))
        if self.on_loaded is not None and job.files:
            self.on_loaded(name, [str(file.name) for file in job.files])
        if outcome is None:  # its files were put aside; the table stays as fresh as it was
            return UpdateFinished(job, job.loaded_from)
        assert isinstance(outcome, LoadResult)
        self._notes.took(name, ended.at - job.start, job.worst_case_us, ended.at)
        self._observation.committed(job, outcome, now, ended.at)
        if self.on_committed is not None:
            self.on_committed(name, job.loaded_from, outcome.freshness, outcome.rows)
        if self.on_discarded is not None and outcome.discarded:
            self.on_discarded(name, outcome.discarded)
        return UpdateFinished(job, outcome.freshness)

    def _failed(self, job: Update, error: BaseException, now: int) -> Event:
        self._observation.failed(job.task.name)
        return JobFailed(job, self._failures.failed(job.task.name, error, now))
