"""When a late table will have caught up: paper 001's Theorem 4, with what is known at an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshline.kernel.core.task import BACKED_OFF, WAITING
from freshline.kernel.recovery.outages import RememberingRelease
from freshline.kernel.recovery.terms import NORMAL, RECOVERING, Recovery, RecoveryTerms
from freshline.kernel.tables.intake import DerivedIntake, FileIntake
from freshline.kernel.tables.task import TableTask
from freshline.planning.analysis.recovery_periods import recovery_time

if TYPE_CHECKING:
    from freshline.kernel.core.timers import Timers


class PromisingRelease(RememberingRelease):
    """Rule (4) of a table with terms of recovery; it promises when a recovery ends."""

    __slots__ = (
        "_entered_running",
        "_outage_us",
        "_promised_at",
        "_promised_landed",
        "mode",
        "recovery",
        "terms",
    )

    def __init__(self, task: TableTask, timers: Timers, terms: RecoveryTerms) -> None:
        super().__init__(task, timers, terms.phase_us)
        self.terms = terms
        self.mode = NORMAL
        self.recovery: Recovery | None = None  # the last or the current one
        self._entered_running = False
        self._outage_us = 0  # the longest time without a file since the table last was fresh
        self._promised_at = 0  # the instant of the last promise, and the files that had come by then
        self._promised_landed = 0

    @property
    def _is_promised(self) -> bool:
        return self.mode == RECOVERING and self.recovery is not None and self.recovery.due is not None

    @property
    def _lacks_promise(self) -> bool:
        """Whether it recovers without a promise.

        Not while the job runs or a failed one backs off: a promise follows then.
        """
        waits = self._entered_running or self.task.state == BACKED_OFF
        return self.mode == RECOVERING and not self._is_promised and not waits

    def _is_still_coming(self, now: int) -> bool:
        """Whether more files have come since the promise than from a healthy feed.

        In a live run, files of an outage are found in several steps, and the promise was made at the first.
        """
        if not isinstance(self.task.intake, FileIntake):
            return False
        since_us = now - self._promised_at + self.terms.found_within_us
        return self.task.intake.landed - self._promised_landed > since_us // self.task.period_us + 1

    def _promise(self, now: int, first_release: int) -> None:
        assert self.recovery is not None
        first_release = max(first_release, self.order.window_end)
        taken_us = self.time_to_recover(now, first_release)
        if taken_us is not None:
            self.recovery.due = max(self.recovery.due or 0, first_release + taken_us)
        if isinstance(self.task.intake, FileIntake):
            self._promised_at, self._promised_landed = now, self.task.intake.landed

    def _promise_anew(self, now: int) -> None:
        """Promises anew, from the next release: at most a recovery period ahead, or known."""
        self._promise(now, max(now + self.terms.period_us, self.task.release))

    def time_to_recover(self, now: int, first_release: int) -> int | None:
        """How long recovery takes at most, from the first release with the recovery period.

        For a base table λ is the outage, or as many periods as there are files. A derived table's edge lies
        at most now ahead of its freshness, so its staleness takes the place of λ + J. If a source is not
        healthy, nothing is promised.
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
        """How long before its promised end a recovery would be over, with AUS alone from `at` on.

        By then `updates` more are done, and files go on coming. None if nothing is promised. A job in
        recovery mode is due after a recovery period, so only that much counts for its response: the i-th job
        (from 0) ends by at + Θ + i·p^[r]. It is the last one if i + 1 jobs are enough for the files that are
        there and the k that come until then, one per period: the least k with i = there + k − 1.
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

    def next_arrival(self, now: int) -> tuple[int, int] | None:
        """The earliest and the latest instant at which the next file is expected; None in an outage.

        They count from the last file. If that was irregular, the declared phase counts too: the earlier and
        the later of both. An overdue file may come at any moment, and the one after it counts from when it
        was due.
        """
        period_us, jitter_us, phase_us = self.task.period_us, self.terms.found_within_us, self.terms.phase_us
        last = self._last_arrival
        # The first and the last declared instant that the file may have been due at.
        slot = phase_us + -(-(last - jitter_us - phase_us) // period_us) * period_us
        slot_latest = phase_us + (last - phase_us) // period_us * period_us
        if slot <= last:  # it kept to the declared schedule
            earliest, latest = slot + period_us, slot_latest + period_us + jitter_us
        elif abs(self._silent_us - period_us) <= jitter_us:  # it came when it was expected
            earliest, latest = last + period_us - jitter_us, last + period_us + jitter_us
        else:
            due = slot_latest + period_us
            earliest, latest = min(due, last + 1), max(due, last + period_us) + jitter_us
        if now > latest + period_us:
            return None
        return earliest, max(now, latest)
