"""Recovery of late tables: paper 001's two modes, and what is promised of the way back.

In recovery mode a table's jobs are released every p^[r] instead of every p. When a task may enter that mode
is its pool's policy to say; how its releases change then is said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Self

from freshline.analysis.adaptive import recovery_time
from freshline.kernel.task import BACKED_OFF, IDLE, READY, RUNNING, WAITING
from freshline.tables.intake import DerivedIntake, FileIntake
from freshline.tables.release import RememberingRelease
from freshline.tables.task import TableTask

if TYPE_CHECKING:
    from freshline.kernel.timers import Timers
    from freshline.tables.update import Update

NORMAL: Final = 0
RECOVERING: Final = 1
LEAVING: Final = 2  # it has caught up; the share it had is free once its last job's deadline has passed


@dataclass(frozen=True, slots=True)
class Terms:
    """On which terms a table recovers."""

    cost_us: int  # e, as provisioned for
    period_us: int  # p^[r]
    threshold_us: int  # ΔF: a table that is behind by more is late
    response_us: int  # Θ
    jitter_us: int = 0  # J of its feed
    finding_us: int = 0  # live, a file is found a moment after it came: that is no outage
    phase_us: int = 0  # φ of its feed
    weight: Fraction = Fraction(1)
    source_bounds_us: tuple[int | None, ...] = ()  # A(V) of the tables that it reads
    align_us: int = 0  # the windows that it is loaded by

    @property
    def found_within_us(self) -> int:
        """How long after it was due a file is there, at the latest."""
        return self.jitter_us + self.finding_us


@dataclass(slots=True)
class Recovery:
    """A table's way back, from the instant it entered recovery mode."""

    entered: int
    due: int | None  # by when it must be over; None where nothing is promised, or not yet
    ended: int | None = None

    @property
    def in_time(self) -> bool | None:
        """Whether it was over by then; None while that is open or nothing was promised."""
        return None if self.due is None or self.ended is None else self.ended <= self.due


class AdaptiveRelease(RememberingRelease):
    """Rule (4) with the period of the task's mode; Rule RN, and the reweighting rules (i) to (vii)."""

    __slots__ = (
        "_entered_running",
        "_outage_us",
        "_promised_at",
        "_promised_landed",
        "behind",
        "excused",
        "mode",
        "queued",
        "recovery",
        "terms",
    )

    def __init__(self, task: TableTask, timers: Timers, terms: Terms) -> None:
        super().__init__(task, timers, terms.phase_us)
        self.terms = terms
        self.mode = NORMAL
        self.queued = False  # among those that wait to enter recovery mode
        self.recovery: Recovery | None = None  # the last one, or the present one
        self._entered_running = False
        self._outage_us = 0  # the longest time without a file since the table last was fresh
        self._promised_at = 0  # when a promise was last made, and how many files had come by then
        self._promised_landed = 0
        # Whether its bound is not asserted: its feed broke, or its lag has another cause upstream. It is
        # again once the table has caught up (paper 001, Theorems 2 and 3).
        self.excused = False
        self.behind = False  # by more than a period

    @classmethod
    def succeeding(cls, rule: RememberingRelease, terms: Terms) -> Self:
        """The table's rule from now on. Its job, release and deadline stay, and so does the timer for it."""
        own = cls(rule.task, rule.timers, terms)
        own.finish_before, own.next_from = rule.finish_before, rule.next_from
        own._last_arrival, own._silent_us = rule._last_arrival, rule._silent_us
        return own

    def take_over(self, now: int) -> None:
        """Its bound is known from now on, and asserted from the first instant at which the table is fresh."""
        self._excuse(self.task.state != IDLE or self._source_is_excused())
        self._compare(now)

    # -- what happens ------------------------------------------------------------------------------

    def source_advanced(self, now: int) -> None:
        super().source_advanced(now)
        broke = self._notice()
        # Another outage, or more files of the last one, and what was promised for a healthy feed is promised
        # anew; or the sources of a derived table are healthy at last, and something can be promised.
        if self._lacks_promise or (self._is_promised and (broke or self._is_still_coming(now))):
            self._promise_anew(now)
        self._compare(now)

    @property
    def _is_promised(self) -> bool:
        return self.mode == RECOVERING and self.recovery is not None and self.recovery.due is not None

    @property
    def _lacks_promise(self) -> bool:
        """Whether it recovers without a promise; not while the job runs after which there will be one."""
        return self.mode == RECOVERING and not self._is_promised and not self._entered_running

    def _is_still_coming(self, now: int) -> bool:
        """Whether more files have come since the promise than of a feed that is well again.

        Live, what piled up is found in several pieces, and the promise was made for the first of them.
        """
        if not isinstance(self.task.intake, FileIntake):
            return False
        since_us = now - self._promised_at + self.terms.found_within_us
        return self.task.intake.landed - self._promised_landed > since_us // self.task.period_us + 1

    def _notice(self) -> bool:
        """Looks at the feed, or at the sources; whether the feed has just come back from an outage."""
        task, terms = self.task, self.terms
        if not isinstance(task.intake, FileIntake):
            return False
        silent_us = self._silent_us
        broke = silent_us > task.period_us + terms.found_within_us
        # A promise that is made anew counts from the last outage; what is left of others is in the backlog.
        anew = broke and self.mode == RECOVERING
        self._outage_us = silent_us if anew else max(self._outage_us, silent_us)
        self._excuse(self.excused or broke)
        return broke

    def _excuse(self, excused: bool) -> None:
        if excused != self.excused:
            self.excused = excused
            self.task.pool.order.excuse(self.task, excused)
            if excused:
                # At once, for a derived table does not hear of its sources while it is updated.
                for dependent in self.task.dependents:
                    if isinstance(dependent.rule, AdaptiveRelease):
                        dependent.rule._excuse(True)

    def _source_is_excused(self) -> bool:
        intake = self.task.intake
        return isinstance(intake, DerivedIntake) and any(
            isinstance(source.rule, AdaptiveRelease) and source.rule.excused for source in intake.sources
        )

    @property
    def forgiven(self) -> bool:
        """Whether a late table's deadlines may be passed over: it will get a larger share for it."""
        return self.excused and self.terms.period_us < self.task.period_us

    def _was_starved(self, job: Update) -> bool:
        """Whether a derived table's sources were staler than their bounds when its job started."""
        if not self.terms.source_bounds_us:
            return False
        oldest_us = max(bound_us or 0 for bound_us in self.terms.source_bounds_us) + self.terms.align_us
        return job.start - self.task.freshness > oldest_us

    def _jumped_in_window(self, job: Update) -> bool:
        """Whether it has caught up sooner than a certificate knows, which has no place for its next job."""
        return self.task.freshness > job.loaded_to and self.task.pool.order.window_end >= 0

    def _compare(self, now: int) -> None:
        """How far the table is behind has changed."""
        task = self.task
        if task.empty:
            return  # its first update takes all there is; before it there is nothing to be behind of
        lag_us = task.intake.trailing_edge(now) - task.freshness
        if (lag_us > task.period_us) != self.behind:
            self.behind = not self.behind
            task.pool.order.behind(task, self.behind)
        if lag_us > self.terms.threshold_us and self.mode == NORMAL and not self.queued:
            self._excuse(True)
            if self.terms.period_us < task.period_us:  # otherwise there is nothing to gain
                task.pool.late(task)

    def job_finished(self, now: int, job: Update) -> None:
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
        # While it ran it did not hear that its sources had become healthy.
        if self._lacks_promise:
            self._promise_anew(now)
        self._compare(now)

    def may_jump(self, now: int) -> bool:
        return self.task.pool.order.may_jump(self.task, now)

    def _release(self, now: int) -> None:
        self.next_from = self.next_from_earliest
        super()._release(now)

    @property
    def next_from_earliest(self) -> int:
        """When the next job may be released, the liberty counted in that an instant without work gives.

        If since the last job's end a track was free and nothing waited, the distance need not be kept.
        """
        opened = self.task.pool.order.open_at
        idle = self.task.state == IDLE
        return min(self.next_from, opened) if idle and opened >= self.finish_before else self.next_from

    def next_arrival(self, now: int) -> tuple[int, int] | None:
        """The earliest and the latest instant at which the next file is to be expected; None in an outage.

        From the last one, and where that was no regular one also from the declared phase: then whichever is
        earlier, and whichever is later. A file that is overdue may come at any moment, and was to be expected
        in the past: the one after it counts from then.
        """
        period_us, jitter_us, phase_us = self.task.period_us, self.terms.found_within_us, self.terms.phase_us
        last = self._last_arrival
        # The first and the last one of the declared instants that it may have been due at.
        slot = phase_us + -(-(last - jitter_us - phase_us) // period_us) * period_us
        slot_latest = phase_us + (last - phase_us) // period_us * period_us
        if slot <= last:  # it kept to the declared schedule
            earliest, latest = slot + period_us, slot_latest + period_us + jitter_us
        elif abs(self._silent_us - period_us) <= jitter_us:  # it came when it was to be expected
            earliest, latest = last + period_us - jitter_us, last + period_us + jitter_us
        else:
            due = slot_latest + period_us
            earliest, latest = min(due, last + 1), max(due, last + period_us) + jitter_us
        if now > latest + period_us:
            return None
        return earliest, max(now, latest)

    def rebase(self, now: int) -> None:
        """A released job that was made to wait is released anew, and what it missed is forgotten."""
        task = self.task
        if task.state in (READY, BACKED_OFF) and task.release < now:
            task.release = now
            task.deadline = self.next_from = now + task.period_now_us
            if task.state == READY:
                task.pool.add(task)
        elif task.state == RUNNING and self.next_from < now:
            self.next_from = now

    def is_late(self, now: int) -> bool:
        """Whether the table is behind by more than its threshold (Rule NR)."""
        return self.task.intake.trailing_edge(now) - self.task.freshness > self.terms.threshold_us

    # -- entering: the reweighting rules -----------------------------------------------------------------

    def enter(self, now: int) -> None:
        """The task changes to recovery mode at this instant, t_c."""
        task, period_us = self.task, self.terms.period_us
        self.mode = RECOVERING
        task.period_now_us = period_us
        self.recovery = Recovery(now, None)
        if task.state == RUNNING:
            assert task.job is not None
            if task.job.deadline > now:
                self._entered_running = True  # (vi) and (vii) need to know when it ends
                return
            self.next_from = now  # (v)
        elif task.state == WAITING:
            # (iii), and (iv) of a job that has ended: the next is released at its deadline.
            task.deadline = self.next_from = task.release + period_us
            self._promise(now, task.release)
            return
        elif task.deadline <= now:
            self.next_from = now  # (ii)
        elif task.deadline - now > period_us:
            # (i) and (iv): released now, due a recovery period later.
            task.release = now
            task.deadline = self.next_from = now + period_us
            if task.state == READY:
                task.pool.add(task)  # again, with its new deadline
            self._promise(now, now)
            return
        # (iii) where the deadline is near: the job keeps it, and the next one is released then.
        self._promise(now, self.next_from)

    def _reweigh(self, now: int, job: Update) -> None:
        """(vi) and (vii), when the job that ran at t_c has ended."""
        if now < job.deadline:
            period_us = self.terms.period_us
            gone_us = (now - job.release) * period_us // self.task.period_us
            self.next_from = now + period_us - gone_us
        self._promise(now, self.next_from)

    # -- leaving: Rule RN --------------------------------------------------------------------------------

    def _caught_up(self, now: int, job: Update) -> None:
        assert self.recovery is not None
        self.recovery.ended = now
        self.task.period_now_us = self.task.period_us
        self.mode = LEAVING
        leave_at = max(now, job.deadline)
        if leave_at > now:
            self.timers.set(leave_at, Leave(self))
        else:
            self.left(now)

    def left(self, now: int) -> None:
        """The task is in normal mode again, and its share is free for others."""
        self.mode = NORMAL
        self.task.pool.recovered(self.task)
        self._compare(now)

    # -- promises: Theorem 4 -----------------------------------------------------------------------------

    def _promise(self, now: int, first_release: int) -> None:
        assert self.recovery is not None
        first_release = max(first_release, self.task.pool.order.window_end)
        taken_us = self.time_to_recover(now, first_release)
        if taken_us is not None:
            self.recovery.due = max(self.recovery.due or 0, first_release + taken_us)
        if isinstance(self.task.intake, FileIntake):
            self._promised_at, self._promised_landed = now, self.task.intake.landed

    def _promise_anew(self, now: int) -> None:
        """Counted from the next release: a recovery period ahead at most, or known."""
        self._promise(now, max(now + self.terms.period_us, self.task.release))

    def time_to_recover(self, now: int, first_release: int) -> int | None:
        """How long the table takes at most from its first release with the recovery period.

        For a base table λ is the outage, or as many periods as there are files. A derived table's edge lies
        at most now ahead of its freshness, so its staleness takes the place of λ + J; where a source is not
        healthy nothing is promised.
        """
        task, terms = self.task, self.terms
        ahead_us = max(0, first_release - now)
        if isinstance(task.intake, FileIntake):
            files = task.intake.files(task.job)
            outage_us = max(self._outage_us, files * task.period_us) + ahead_us
            jitter_us = terms.jitter_us
        elif self._sources_are_healthy(now):
            outage_us, jitter_us = now - task.freshness + ahead_us, 0
        else:
            return None
        return recovery_time(terms.response_us, task.period_us, terms.period_us, outage_us, jitter_us)

    def spare_time(self, at: int, updates: int) -> int | None:
        """How long before its recovery must be over it would be, with AUS alone from `at` on.

        By then so many more updates are done, and files have gone on coming. None where nothing is promised.
        A job in recovery mode is due after a recovery period, so that much, not a whole period, counts for
        its response: the i-th job (from 0) ends by at + Θ + i·p^[r]. It is the last one if i + 1 are enough
        for the files that are there and the k that have come until then, one in every period: the least k
        for which i = there + k − 1 does.
        """
        task, terms = self.task, self.terms
        if self.mode != RECOVERING or self.recovery is None or self.recovery.due is None:
            return None
        period_us, gain_us = task.period_us, task.period_us - terms.period_us
        if gain_us <= 0:
            return None
        if task.state == WAITING:
            at = max(at, task.release)
        first = at + terms.response_us - gain_us  # when the first job has ended
        if isinstance(task.intake, FileIntake):
            there = max(0, task.intake.files(task.job) - updates)
            since = self._last_arrival - terms.found_within_us
        else:
            there, since = 1, task.freshness + updates * period_us
        ahead_us = first - since + (there - 1) * terms.period_us - period_us
        last = max(0, there - 1 + max(0, ahead_us // gain_us + 1))
        return self.recovery.due - (first + last * terms.period_us)

    def _sources_are_healthy(self, now: int) -> bool:
        """Definition 12, with H = A(V): none of the sources is staler than its bound."""
        intake = self.task.intake
        return isinstance(intake, DerivedIntake) and all(
            bound_us is not None and now - source.freshness <= bound_us
            for source, bound_us in zip(intake.sources, self.terms.source_bounds_us, strict=True)
        )


class Leave:
    """The end of a task's last deadline in recovery mode."""

    __slots__ = ("rule",)

    def __init__(self, rule: AdaptiveRelease) -> None:
        self.rule = rule

    def due(self, at: int) -> int | None:
        self.rule.left(at)
        return None
