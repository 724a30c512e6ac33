"""The recoveries of a run: when each is due, and when it ended."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from freshline.base.duration import format_duration
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.recovery.aus import admission, waiting
from freshline.kernel.recovery.modes import adaptive, is_recovering, recovery_rule
from freshline.kernel.recovery.terms import Recovery
from freshline.kernel.tables.task import TableTask, tables_of
from freshline.planning.plan.plan import TablePlan

_logger = logging.getLogger(__name__)
_OVER_MAX: Final = 50
# The last logged stage of a recovery.
_BEGUN: Final = 1
_PROMISED: Final = 2
_OVER: Final = 3


@dataclass(frozen=True, slots=True)
class RecoveryDue:
    """When a table should have caught up; only an estimate while it waits to enter recovery mode."""

    at: int
    estimated: bool = False


@dataclass(slots=True)
class _Noticed:
    """A recovery and its last log entry."""

    recovery: Recovery
    logged: int = 0
    due: int | None = None

    def is_put_off(self) -> bool:
        """Whether it is due noticeably later than logged: by a tenth of the promised time."""
        if self.due is None or self.recovery.due is None:
            return False
        return (self.recovery.due - self.due) * 10 >= self.due - self.recovery.entered


class Recoveries:
    """The present recoveries and the latest ended ones."""

    def __init__(self, started: int) -> None:
        self._started = started
        self._last: dict[str, _Noticed] = {}  # by table
        self._kept: deque[tuple[str, Recovery]] = deque(maxlen=_OVER_MAX)

    def notice(self, task: TableTask, now: int, expected: bool) -> None:
        """Logs whether the table has begun to recover or has recovered."""
        rule = recovery_rule(task)
        if rule is None or rule.recovery is None:
            return
        last = self._last.get(task.name)
        if last is None or last.recovery is not rule.recovery:
            if last is not None:
                self._log(task.name, last, now, expected)  # it may have ended since then
            last = self._last[task.name] = _Noticed(rule.recovery)
            self._kept.append((task.name, rule.recovery))
        self._log(task.name, last, now, expected)

    def _log(self, table: str, noticed: _Noticed, now: int, expected: bool) -> None:
        """Logs the beginning, the promise if it comes later or changes, and the end."""
        recovery = noticed.recovery
        if recovery.ended is not None:
            reached, said = _OVER, self._compared(recovery, expected)
        elif recovery.due is not None:
            reached, said = _PROMISED, f"recovering{over_by(RecoveryDue(recovery.due), now)}"
        else:
            reached, said = _BEGUN, "recovering"
        if reached == _PROMISED and noticed.is_put_off():
            said += ", later than promised before"
        elif reached <= noticed.logged:
            return
        noticed.logged, noticed.due = reached, recovery.due
        _logger.warning("%s: %s", table, said)

    def lines(
        self, kernel: Kernel, now: int, due: Mapping[str, RecoveryDue], plans: Mapping[str, TablePlan]
    ) -> list[str]:
        """A sentence for each recovery: present ones, waiting ones and ended ones, the last first."""
        lines = [
            f"{task.name}: recovering{over_by(due.get(task.name), now)}"
            for task in tables_of(kernel)
            if is_recovering(task)
        ]
        for pool in kernel.pools:
            lines += [
                f"{task.name}: late, waits for others{over_by(due.get(task.name), now)}"
                for task in waiting(pool, now)
            ]
        for table, recovery in reversed(self._kept):
            if recovery.ended is not None:
                lines.append(f"{table}: {self._compared(recovery, plans[table].expected)}")
        return lines

    def _compared(self, recovery: Recovery, expected: bool) -> str:
        assert recovery.ended is not None
        taken = format_duration(recovery.ended - recovery.entered)
        said = f"recovered in {taken}"
        if recovery.due is not None:
            word = "expected" if expected else "promised"
            said += f", {word} {format_duration(recovery.due - recovery.entered)}"
        return f"{said} (at +{format_duration(recovery.ended - self._started)})"


def over_by(due: RecoveryDue | None, now: int) -> str:
    """When a recovery is over, as the end of a sentence."""
    if due is None:
        return ""
    if due.at < now:
        return f", should have been over {format_duration(now - due.at)} ago"
    return f", over in {'about' if due.estimated else 'at most'} {format_duration(due.at - now, up=True)}"


def dues(kernel: Kernel, now: int) -> dict[str, RecoveryDue]:
    """By task that recovers or waits to, when it should have caught up."""
    found: dict[str, RecoveryDue] = {}
    for pool in kernel.pools:
        if admission(pool) is not None:
            found |= _dues_of_pool(kernel, pool, now)
    return found


def _dues_of_pool(kernel: Kernel, pool: TrackPool, now: int) -> dict[str, RecoveryDue]:
    found: dict[str, RecoveryDue] = {}
    turn: int | None = now  # when the next waiting task can enter; None: not known
    for task in tables_of(kernel):
        if task.pool is pool and is_recovering(task):
            recovery = adaptive(task).recovery
            due = None if recovery is None else recovery.due
            if due is not None:
                found[task.name] = RecoveryDue(due)
            turn = None if due is None or turn is None else max(turn, due)
    for task in waiting(pool, now):
        # Its backlog grows until its turn.
        taken_us = None if turn is None else adaptive(task).time_to_recover(now, turn)
        if turn is None or taken_us is None:
            break
        found[task.name] = RecoveryDue(turn + taken_us, estimated=True)
        turn += taken_us + task.period_us  # its share is free once its last deadline has passed
    return found
