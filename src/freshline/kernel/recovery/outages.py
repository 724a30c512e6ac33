"""The history of a feed's deliveries, for a table's release rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshline.kernel.tables.release import StaleRelease
from freshline.kernel.tables.task import TableTask

if TYPE_CHECKING:
    from freshline.kernel.core.timers import Timers
    from freshline.kernel.recovery.aus import Aus


class RememberingRelease(StaleRelease):
    """Rule (4) of a table whose bound may become known later: it records its feed's deliveries."""

    __slots__ = ("_last_arrival", "_phase_us", "_silent_us", "order")

    order: Aus  # its pool's

    def __init__(self, task: TableTask, timers: Timers, phase_us: int) -> None:
        super().__init__(task, timers)
        self._phase_us = phase_us  # φ of its feed
        self._last_arrival = 0
        self._silent_us = task.period_us  # the time without a file before the last one came

    def begin(self, now: int) -> None:
        self._last_arrival = now
        super().begin(now)
        # As if a file had come a period before the first one that is due.
        self._last_arrival = max(now, self._phase_us) - self.task.period_us
        self._silent_us = self.task.period_us

    def source_advanced(self, now: int) -> None:
        super().source_advanced(now)
        self._silent_us = now - self._last_arrival
        self._last_arrival = now
