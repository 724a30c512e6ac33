"""AUS that runs late tables ahead of healthy ones, if a certificate shows that these stay in time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Final, Self

from freshline.kernel.core.order import OrderContext, ReadyJob
from freshline.kernel.core.task import BACKED_OFF, READY, RUNNING, WAITING, Task
from freshline.kernel.recovery.aus import Aus, shares
from freshline.kernel.recovery.certificate import Certificate, Forecast, can_be_foreseen
from freshline.kernel.recovery.expected_job import loaded_to
from freshline.kernel.recovery.modes import AdaptiveRelease, adaptive
from freshline.kernel.tables.intake import DerivedIntake, FileIntake
from freshline.kernel.tables.task import Batch, TableTask

if TYPE_CHECKING:
    from freshline.kernel.core.timers import Timers
    from freshline.kernel.tables.update import Update

# A longer job delays healthy tables for longer, and gets a certificate less often: 5 was the best of 1 to 8.
_BATCH_MAX: Final = 5
_BROKEN_MAX: Final = 100
# The most certificates to try at one decision; twice as many gained nothing.
_TRIES_MAX: Final = 8


class AusSlack(Aus):
    """AUS with recovery jobs in the slack of the healthy tables.

    A recovery job starts at once if all healthy jobs, known and expected, still end in time (`certificate`).
    It takes several files if that saves start-up cost. Until the first instant without work, healthy jobs
    start in the certified order, and others only with a new certificate. Without one, AUS decides. A broken
    assumption ends the certificate, and is recorded.
    """

    idles: ClassVar[bool] = True  # for an expected certified job

    def __init__(self, shares: Mapping[str, tuple[int, int]], tracks: int, timers: Timers) -> None:
        super().__init__(shares, tracks)
        self._tasks: list[TableTask] = []
        self._timers = timers
        self._able: bool | None = None
        self._certified: deque[tuple[TableTask, int]] = deque()
        self._behind: dict[str, TableTask] = {}
        self._extra: set[str] = set()  # tasks with recovery jobs that run ahead of others
        self._look_at = -1
        self.certificates = 0
        self.broken: deque[tuple[int, str]] = deque(maxlen=_BROKEN_MAX)  # the latest of them

    def joined(self, task: Task) -> None:
        super().joined(task)
        assert isinstance(task, TableTask)
        self._tasks.append(task)

    @classmethod
    def made_for(cls, setting: OrderContext) -> Self:
        return cls(shares(setting), setting.pool.tracks, setting.timers)

    def job_limit_us(self, task: Task) -> int | None:
        # The certificate fixes what each of its jobs loads.
        return 0 if self._in_window else super().job_limit_us(task)

    # -- decisions ---------------------------------------------------------------------------------

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        if self._in_window:
            return self._take_certified(now, idle)
        task = self._take_extra(now, idle) or super().take(now, idle)
        if task is None:
            self.open_at = now
        return task

    @property
    def _in_window(self) -> bool:
        """Since a certificate, until all its work has ended and a track is free."""
        return self.window_end >= 0

    def review(self, now: int) -> None:
        # A table that enters recovery mode gets a promise, which a certificate might break by passing it
        # over.
        if not self._in_window:
            super().review(now)

    def _take_certified(self, now: int, idle: list[int]) -> ReadyJob | None:
        if self._strike_out(now) and (self._certified or self._extra):
            self._renew(now, idle)  # its next job may come less than a period after that one
            self._strike_out(now)  # an overdue file is certified at once, though it is not there
        overrun = self._overrun(now)
        if overrun is not None:
            self._give_up(now, f"an update of {overrun.name} costs more than was assumed")
        elif self._certified or self._extra:
            return self._take_extra(now, idle) or self._take_next(now, idle)
        else:
            # All foreseen work is done. What was not foreseen must not harm other tables.
            self._close(now, [*self._excused.values(), *self.ready()])
        super().review(now)
        return self.take(now, idle)

    def _strike_out(self, now: int) -> bool:
        """Drops certified jobs that should be released by now but have no work. Whether one is derived."""
        certified, derived = self._certified, False
        while certified and certified[0][0].state not in (READY, RUNNING) and certified[0][1] <= now:
            task, _ = certified.popleft()
            derived = derived or isinstance(task.intake, DerivedIntake)
        return derived

    def _take_next(self, now: int, idle: list[int]) -> ReadyJob | None:
        """The next job of the certified order; or of a new one, if that job is not there yet."""
        if self._certified and self._can_start(self._certified[0][0]):
            return self._certified.popleft()[0]
        certificate = self._certify(now, idle, None, 0)
        if (
            certificate is not None
            and certificate.order
            and self._can_start(certificate.order[0][0])
            and self._keeps_promises(now, certificate.end, None, 0)
        ):
            self._adopt(certificate)
            return self._certified.popleft()[0]
        self._look_again(now)
        return None

    def _renew(self, now: int, idle: list[int]) -> None:
        certificate = self._certify(now, idle, None, 0)
        if certificate is not None and self._keeps_promises(now, certificate.end, None, 0):
            self._adopt(certificate)

    def _adopt(self, certificate: Certificate) -> None:
        self._certified = deque(certificate.order)
        self.window_end = certificate.end

    def _look_again(self, now: int) -> None:
        """Sets a timer for a certified job that may not come, or a running one that may not end in time."""
        jobs = [task.job for task in self._tasks if task.job is not None]
        instants = [job.start + job.worst_case_us + 1 for job in jobs]
        if self._certified:
            instants.append(self._certified[0][1])
        look_at = min((instant for instant in instants if instant > now), default=None)
        if look_at is not None and look_at != self._look_at:
            self._look_at = look_at
            self._timers.set(look_at, _Look(self._tasks[0]))

    def _overrun(self, now: int) -> TableTask | None:
        for task in self._tasks:
            if task.job is not None and now > task.job.start + task.job.worst_case_us:
                return task
        return None

    def _take_extra(self, now: int, idle: list[int]) -> ReadyJob | None:
        """A late table's job that may start now, ahead of all others."""
        candidates = self._candidates(now)
        if not candidates:
            return None
        # A job goes ahead of others only if it saves a start-up; an idle track takes anything.
        least = 2 if any(task.name not in self._excused for task in self.ready()) else 1
        least_refused_us = None
        tries = 0
        for task in candidates:
            for batch in _batches(task, now, least):
                cost_us = task.worst_case_of(batch)
                if least_refused_us is not None and cost_us >= least_refused_us:
                    continue
                if not adaptive(task).forgiven and now + cost_us > task.deadline:
                    continue  # it must meet a deadline of its own
                if tries == _TRIES_MAX:
                    return None
                tries += 1
                certificate = self._certify(now, idle, task, batch)
                if certificate is None:
                    least_refused_us = cost_us
                elif self._keeps_promises(now, certificate.end, task, batch):
                    self._adopt(certificate)
                    self._extra.add(task.name)
                    return task if batch == 1 else Batch(task, batch)
        return None

    def may_jump(self, rule: AdaptiveRelease, now: int) -> bool:
        # A certificate derives the next jobs of tables that are not late from how far they are loaded. Such
        # tables are behind by so little that they need not jump.
        return rule.excused and rule.is_late(now) and (rule.forgiven or not self._in_window)

    def behind(self, task: TableTask, behind: bool) -> None:
        if behind:
            self._behind[task.name] = task
        else:
            del self._behind[task.name]

    def _candidates(self, now: int) -> list[TableTask]:
        """Tables that are behind and have something to load, the least fresh first."""

        def lag(task: TableTask) -> tuple[float, int]:
            return (task.freshness - task.intake.trailing_edge(now)) / task.period_us, task.place

        return sorted(filter(_has_work, self._behind.values()), key=lag) if self._behind else []

    def _keeps_promises(self, now: int, end: int, extra: TableTask | None, batch: int) -> bool:
        """Whether all recoveries would still end in time if AUS takes over when the certificate ends.

        A recovery that is overdue already is lost, and delays no other table.
        """
        for task in self._excused.values():
            rule = adaptive(task)
            if rule.recovery is None or rule.recovery.due is None or rule.recovery.due <= now:
                continue
            spare_us = rule.spare_time(end, batch if task is extra else 0)
            if spare_us is not None and spare_us < 0:
                return False
        return True

    def _can_start(self, task: TableTask) -> bool:
        """Whether a certified job is released, and the sources to update before it are updated."""
        if task.state != READY:
            return False
        if isinstance(task.rule, AdaptiveRelease) and isinstance(task.intake, DerivedIntake):
            return not any(
                isinstance(source, TableTask) and source.state == RUNNING for source in task.intake.sources
            )
        return True

    # -- certificates ------------------------------------------------------------------------------------

    def _certify(self, now: int, idle: list[int], extra: TableTask | None, batch: int) -> Certificate | None:
        if self._able is None:
            self._able = can_be_foreseen(self._tasks)
        if not self._able:
            return None
        ends: dict[str, int] = {}
        for task in self._tasks:
            if task.empty or (task.state == BACKED_OFF and not _is_excused(task)):
                return None  # its cost or its start is unknown
            if task.job is not None:
                ends[task.name] = task.job.start + task.job.worst_case_us
                if ends[task.name] < now or _may_surprise(task.job):
                    return None  # its end, or the release of its next job, is unknown
        free_at = [*ends.values(), *[now] * len(idle)]
        extras_end = max((ends[name] for name in self._extra), default=now)
        starting: dict[str, int] = {}
        if extra is not None:
            ends[extra.name] = free_at[-1] = now + extra.worst_case_of(batch)
            extras_end = max(extras_end, ends[extra.name])
            starting[extra.name] = batch
        tasks = [task for task in self._tasks if not self._is_left_out(task, starting.get(task.name))]
        self.certificates += 1
        return Forecast(
            now, tasks, free_at, ends, extras_end, self._extra | starting.keys(), starting
        ).certify()

    def _is_left_out(self, task: TableTask, batch: int | None) -> bool:
        """Whether a certificate may ignore a table.

        The table is late and stays late after its recovery job; or its last job failed, and the next is
        unknown.
        """
        rule = task.rule
        if task.state == BACKED_OFF:
            return True
        if not isinstance(rule, AdaptiveRelease) or not rule.forgiven:
            return False
        if batch is None and task.job is None:
            return rule.behind
        if isinstance(task.intake, FileIntake):
            return len(task.intake.pending) > (batch or 0)
        return task.intake.trailing_edge(0) > loaded_to(task, batch or 0)

    def ended(self, job: Update, now: int) -> None:
        if job.task.name in self._extra:
            self._extra.remove(job.task.name)
            # The job used no share, so the table's next job need not keep a distance from it.
            rule = adaptive(job.task)
            rule.next_from = now if rule.forgiven else min(rule.next_from, now)
        if self._in_window and now > job.start + job.worst_case_us:
            self._give_up(now, f"an update of {job.task.name} cost more than was assumed")

    def _give_up(self, now: int, why: str) -> None:
        self.broken.append((now, why))
        self._close(now, self._excused.values())

    def _close(self, now: int, passed_over: Iterable[TableTask]) -> None:
        """Ends the window. Tables that were passed over do not catch up on missed releases."""
        self._certified.clear()
        self._extra.clear()
        self.window_end = -1
        for task in passed_over:
            if isinstance(task.rule, AdaptiveRelease):
                task.rule.rebase(now)


class _Look:
    """Wakes a pool."""

    __slots__ = ("_task",)

    def __init__(self, task: TableTask) -> None:
        self._task = task

    def due(self, at: int) -> int | None:
        self._task.pool.touch()
        return None


def _may_surprise(job: Update) -> bool:
    """Whether a certificate would need to know how far a job jumps."""
    rule = job.task.rule
    return job.jump_to > job.loaded_to and isinstance(rule, AdaptiveRelease) and not rule.forgiven


def _is_excused(task: TableTask) -> bool:
    return isinstance(task.rule, AdaptiveRelease) and task.rule.excused


def _has_work(task: TableTask) -> bool:
    return task.state in (READY, WAITING) and task.intake.backlogged(task.freshness, task.period_us)


def _batches(task: TableTask, now: int, least: int) -> Iterable[int]:
    """How many updates a recovery job may do at once, the most first: together at most a period long.

    None if a single update may be longer: with average provisioning, or with learned costs.
    """
    if task.worst_case_us > task.period_us:
        return ()
    if isinstance(task.intake, FileIntake):
        there = len(task.intake.pending)
    else:
        there = max(1, (task.intake.trailing_edge(now) - task.freshness) // task.period_us)
    if not task.startup_us or task.worst_case_us <= task.startup_us:
        return (1,)  # a batch would save nothing
    fitting = (task.period_us - task.startup_us) // (task.worst_case_us - task.startup_us)
    return range(max(1, min(there, fitting, _BATCH_MAX)), min(there, fitting, least) - 1, -1)
