"""How a run that is to leave nothing out comes to its end."""

from __future__ import annotations

from collections.abc import Callable

from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.steps.task import StepTask, steps_of
from freshline.kernel.tables.drain import DrainBegun, nothing_is_left, only_rest_is_left
from freshline.live.loop.failures import ATTEMPTS_MAX
from freshline.live.loop.messages import Inbox
from freshline.live.nodes.node_work import NodeWork
from freshline.live.tables.file_watch import FileWatch
from freshline.live.tables.judge import FailureCounts


class DrainControl:
    """Ends a run when nothing is left to load. Nobody waits for periods: nothing more will come."""

    def __init__(
        self,
        watch: FileWatch,
        inbox: Inbox,
        nodes: NodeWork,
        troubles: FailureCounts,
        tell: Callable[[Event], None],
        stop: Callable[[str], None],
    ) -> None:
        self._watch = watch
        self._inbox = inbox
        self._nodes = nodes
        self._troubles = troubles
        self._tell = tell
        self._stop = stop
        self.begun = False  # whether the kernel was told so
        self.in_vain = False  # whether it ended without what it waited for

    def consider(self, now: int, kernel: Kernel) -> None:
        """Now and then."""
        self._nodes.announce_drain()
        in_vain = self._nodes.waits_in_vain(kernel, now)
        if in_vain is not None and not any(self._is_at_work(step) for step in steps_of(kernel)):
            self.in_vain = True
            self._stop(in_vain)
            return
        if not self._watch.is_quiet() or not self._nodes.nothing_more_comes(kernel, self._is_given_up):
            return
        if not self._inbox.is_empty():  # asked last: what has been found by now is there, or was heard
            return
        if any(self._is_at_work(step) for step in steps_of(kernel)):
            return
        if nothing_is_left(kernel, self._is_given_up):
            self._stop("nothing is left to load")
        elif not self.begun and only_rest_is_left(kernel):
            self.begun = True
            self._tell(DrainBegun())

    def _is_at_work(self, step: StepTask) -> bool:
        return step.at_work and not self._is_given_up(step.name)

    def _is_given_up(self, table: str) -> bool:
        attempts = self._troubles.attempts(table)
        # Of a step, whose files are tried with the last of these attempts, one more.
        return (self.begun and attempts >= ATTEMPTS_MAX) or attempts > ATTEMPTS_MAX
