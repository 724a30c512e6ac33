"""Recovery of late tables: paper 001's two modes.

In recovery mode a table's jobs are released every p^[r] instead of every p. The pool's order decides when a
task enters that mode (`kernel.recovery.aus`); this module has its releases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from freshline.kernel.core.task import BACKED_OFF, IDLE, READY, RUNNING, WAITING
from freshline.kernel.recovery.outages import RememberingRelease
from freshline.kernel.recovery.promises import PromisingRelease
from freshline.kernel.recovery.terms import LEAVING, NORMAL, RECOVERING, Recovery, RecoveryTerms
from freshline.kernel.tables.intake import DerivedIntake, FileIntake
from freshline.kernel.tables.task import TableTask

if TYPE_CHECKING:
    from freshline.kernel.core.timers import Timers
    from freshline.kernel.tables.update import Update


class AdaptiveRelease(PromisingRelease):
    """Rule (4) with the period of the task's mode; Rule RN, and the reweighting rules (i) to (vii)."""

    __slots__ = ("behind", "excused", "failed", "queued")

    def __init__(self, task: TableTask, timers: Timers, terms: RecoveryTerms) -> None:
        super().__init__(task, timers, terms)
        self.queued = False  # waits to enter recovery mode
        # Whether its bound is suspended: its feed broke, or its lag has another cause upstream. The bound
        # counts again once the table has caught up (paper 001, Theorems 2 and 3).
        self.excused = False
        self.behind = False  # by more than a period
        self.failed = False  # the last job

    @classmethod
    def succeeding(cls, rule: RememberingRelease, terms: RecoveryTerms) -> Self:
        """The successor of a table's rule. Its job, release, deadline and timer stay."""
        own = cls(rule.task, rule.timers, terms)
        own.order = rule.order
        own.finish_before, own.next_from = rule.finish_before, rule.next_from
        own._last_arrival, own._silent_us = rule._last_arrival, rule._silent_us
        own.failed = rule.task.state == BACKED_OFF
        return own

    def take_over(self, now: int) -> None:
        """The bound is known from now on, and asserted from the first instant at which the table is fresh."""
        self._excuse(self.task.state != IDLE or self._source_is_excused())
        self._compare(now)

    # -- events ------------------------------------------------------------------------------------

    def source_advanced(self, now: int) -> None:
        super().source_advanced(now)
        broke = self._notice()
        # After another outage, or more files of the last one, a new time is promised. So it is when the
        # sources of a derived table are healthy at last.
        if self._lacks_promise or (self._is_promised and (broke or self._is_still_coming(now))):
            self._promise_anew(now)
        self._compare(now)

    def _notice(self) -> bool:
        """Updates the outage from the feed's silence; returns whether the feed just came back from one."""
        task, terms = self.task, self.terms
        if not isinstance(task.intake, FileIntake):
            return False
        silent_us = self._silent_us
        broke = silent_us > task.period_us + terms.found_within_us
        # A new promise counts from the last outage; the backlog has what is left of earlier ones.
        anew = broke and self.mode == RECOVERING
        self._outage_us = silent_us if anew else max(self._outage_us, silent_us)
        self._excuse(self.excused or broke)
        return broke

    def _excuse(self, excused: bool) -> None:
        if excused != self.excused:
            self.excused = excused
            self.order.excuse(self.task, excused)
            if excused:
                # At once: a derived table ignores its sources while it is being updated.
                for dependent in self.task.dependents:
                    if isinstance(dependent, TableTask) and isinstance(dependent.rule, AdaptiveRelease):
                        dependent.rule._excuse(True)

    def _source_is_excused(self) -> bool:
        intake = self.task.intake
        return isinstance(intake, DerivedIntake) and any(
            isinstance(source, TableTask) and isinstance(source.rule, AdaptiveRelease) and source.rule.excused
            for source in intake.sources
        )

    @property
    def forgiven(self) -> bool:
        """Whether a late table may miss deadlines, as it will get a larger share later."""
        return self.excused and self.terms.period_us < self.task.period_us

    def _was_starved(self, job: Update) -> bool:
        """Whether a derived table's sources were staler than their bounds when its job started."""
        if not self.terms.source_bounds_us:
            return False
        oldest_us = max(bound_us or 0 for bound_us in self.terms.source_bounds_us) + self.terms.align_us
        return job.start - self.task.freshness > oldest_us

    def _jumped_in_window(self, job: Update) -> bool:
        """Whether it has caught up sooner than a certificate assumes, which has no place for its next job."""
        return self.task.freshness > job.loaded_to and self.order.window_end >= 0

    def _compare(self, now: int) -> None:
        """Takes note of a changed lag."""
        task = self.task
        if task.empty:
            return  # an empty table has no lag; its first update takes all there is
        lag_us = task.intake.trailing_edge(now) - task.freshness
        if (lag_us > task.period_us) != self.behind:
            self.behind = not self.behind
            self.order.behind(task, self.behind)
        if lag_us > self.terms.threshold_us and self.mode == NORMAL and not self.queued:
            self._excuse(True)
            if self.terms.period_us < task.period_us:  # otherwise recovery gains nothing
                self.order.late(task)
                task.pool.touch()

    def job_failed(self, now: int, job: Update) -> None:
        self.failed = True
        self._excuse(True)
        entered_running, self._entered_running = self._entered_running, False
        if self.mode == RECOVERING:
            assert self.recovery is not None
            self.recovery.due = None
            if entered_running:
                self._count_from_end(now, job)

    def retry(self, now: int) -> None:
        super().retry(now)
        if self._lacks_promise:
            self._promise(now, self.task.release)

    def job_finished(self, now: int, job: Update) -> None:
        self.failed = False
        entered_running, self._entered_running = self._entered_running, False
        caught_up = self.task.intake.caught_up(self.task.freshness, self.task.period_us, job)
        if caught_up:
            self._outage_us = 0
            self._excuse(self._source_is_excused() or self._was_starved(job) or self._jumped_in_window(job))
        if self.mode == RECOVERING:
            if caught_up:
                self._caught_up(now, job)
            elif entered_running:
                self._reweigh(now, job)
        super().job_finished(now, job)
        # While it ran it ignored that its sources became healthy.
        if self._lacks_promise:
            self._promise_anew(now)
        self._compare(now)

    def may_jump(self, now: int) -> bool:
        return self.order.may_jump(self, now)

    def _release(self, now: int) -> None:
        self.next_from = self.next_from_earliest
        super()._release(now)

    @property
    def next_from_earliest(self) -> int:
        """When the next job may be released, at the earliest.

        If a track was free with no waiting job since the last job's end, the job need not keep its distance.
        """
        opened = self.order.open_at
        idle = self.task.state == IDLE
        return min(self.next_from, opened) if idle and opened >= self.finish_before else self.next_from

    def rebase(self, now: int) -> None:
        """Releases a waiting job anew, and forgets what it missed."""
        task = self.task
        if task.state == READY and task.release < now:
            task.release = now
            task.deadline = self.next_from = now + task.period_now_us
            task.pool.add(task)
        elif task.state == RUNNING and self.next_from < now:
            self.next_from = now

    def is_late(self, now: int) -> bool:
        """Whether the table is behind by more than its threshold (Rule NR)."""
        return self.task.intake.trailing_edge(now) - self.task.freshness > self.terms.threshold_us

    # -- entering: the reweighting rules -----------------------------------------------------------------

    def enter(self, now: int) -> None:
        """Changes the task to recovery mode at this instant, t_c."""
        task, period_us = self.task, self.terms.period_us
        self.mode = RECOVERING
        task.period_now_us = period_us
        self.recovery = Recovery(now, None)
        if task.state == RUNNING:
            assert task.job is not None
            if task.job.deadline > now:
                self._entered_running = True  # (vi) and (vii) need its end
                return
            self.next_from = now  # (v)
        elif task.state == WAITING:
            # (iii), and (iv) if its job has ended: the next is released at its deadline.
            task.deadline = self.next_from = task.release + period_us
            self._promise(now, task.release)
            if self.failed:
                self.order.expect(task)  # again, with its new deadline
            return
        elif task.state == BACKED_OFF:
            return  # its release is not known yet
        elif task.deadline <= now:
            self.next_from = now  # (ii)
        elif task.deadline - now > period_us:
            # (i) and (iv): released now, due a recovery period later.
            task.release = now
            task.deadline = self.next_from = now + period_us
            task.pool.add(task)  # again, with its new deadline
            self._promise(now, now)
            return
        # (iii) if the deadline is near: the job keeps it, and the next one is released then.
        self._promise(now, self.next_from)

    def _reweigh(self, now: int, job: Update) -> None:
        """(vi) and (vii), when the job that ran at t_c has ended."""
        self._count_from_end(now, job)
        self._promise(now, self.next_from)

    def _count_from_end(self, now: int, job: Update) -> None:
        if now < job.deadline:
            period_us = self.terms.period_us
            gone_us = (now - job.release) * period_us // self.task.period_us
            self.next_from = now + period_us - gone_us

    # -- leaving: Rule RN --------------------------------------------------------------------------------

    def _caught_up(self, now: int, job: Update) -> None:
        assert self.recovery is not None
        self.recovery.ended = now
        self.task.period_now_us = self.task.period_us
        self.mode = LEAVING
        leave_at = max(now, job.deadline)
        if leave_at > now:
            self.timers.set(leave_at, RecoveryEnd(self))
        else:
            self.left(now)

    def left(self, now: int) -> None:
        """The task is in normal mode again, and its extra share is free."""
        self.mode = NORMAL
        self.order.recovered(self.task)
        self.task.pool.touch()
        self._compare(now)


class RecoveryEnd:
    """The end of a task's last deadline in recovery mode."""

    __slots__ = ("rule",)

    def __init__(self, rule: AdaptiveRelease) -> None:
        self.rule = rule

    def due(self, at: int) -> int | None:
        self.rule.left(at)
        return None


def recovery_rule(task: TableTask) -> AdaptiveRelease | None:
    """The task's release rule, if that has a recovery mode."""
    return task.rule if isinstance(task.rule, AdaptiveRelease) else None


def is_recovering(task: TableTask) -> bool:
    """Whether the task is in recovery mode."""
    return isinstance(task.rule, AdaptiveRelease) and task.rule.mode == RECOVERING


def adaptive(task: TableTask) -> AdaptiveRelease:
    """The task's release rule, which has a recovery mode."""
    assert isinstance(task.rule, AdaptiveRelease), f"{task!r} has no recovery mode"
    return task.rule


def lacks_terms(task: TableTask) -> bool:
    """Whether a task would have a recovery mode if its terms were known."""
    return isinstance(task.rule, RememberingRelease) and not isinstance(task.rule, AdaptiveRelease)
