"""Ends a draining run when nothing is left to load."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.drain import DrainBegun, nothing_is_left, only_rest_is_left
from freshline.live.loop.failures import ATTEMPTS_MAX
from freshline.live.loop.messages import Inbox
from freshline.live.loop.work import Work


class DrainControl:
    """Ends a run when nothing is left to load. It does not wait for periods: no more files will come."""

    def __init__(
        self,
        works: Sequence[Work],
        inbox: Inbox,
        attempts: Callable[[str], int],
        tell: Callable[[Event], None],
        stop: Callable[[str], None],
    ) -> None:
        self._works = works
        self._inbox = inbox
        self._attempts = attempts  # by table: the failures of its present job
        self._tell = tell
        self._stop = stop
        self.begun = False  # whether the kernel knows
        self.incomplete = False  # whether it ended with data left to load

    def consider(self, now: int, kernel: Kernel) -> None:
        """The loop calls it at each tick."""
        for work in self._works:
            work.announce_drain()
        in_vain = next((why for work in self._works if (why := work.waits_in_vain(now)) is not None), None)
        if in_vain is not None and not self._is_at_work():
            self.incomplete = True
            self._stop(in_vain)
            return
        if any(work.expects_more(self._is_given_up) for work in self._works):
            return
        if not self._inbox.is_empty():  # checked last: every file found by now is in the inbox or collected
            return
        if self._is_at_work():
            return
        if nothing_is_left(kernel, self._is_given_up):
            left = [said for work in self._works for said in work.left_behind(self._is_given_up)]
            self.incomplete = bool(left)
            self._stop("; ".join(left) or "nothing is left to load")
        elif not self.begun and only_rest_is_left(kernel):
            self.begun = True
            self._tell(DrainBegun())

    def _is_at_work(self) -> bool:
        return any(work.is_at_work(self._is_given_up) for work in self._works)

    def _is_given_up(self, table: str) -> bool:
        attempts = self._attempts(table)
        # A step has one more attempt: the last of these tries its files.
        return (self.begun and attempts >= ATTEMPTS_MAX) or attempts > ATTEMPTS_MAX
