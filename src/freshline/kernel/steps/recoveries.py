"""The recoveries of outputs after an outage of a feed: the backlogs, what is promised, and when it ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

from freshline.kernel.recovery.terms import Recovery
from freshline.planning.plan.step_promises import Backlog, StepPromises

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.steps.task import StepTask

# Backlogs that are remembered. Older ones are done, or nothing is promised.
_KEPT: Final = 20


class StepRecoveries:
    """The recoveries of a kernel's outputs. They are observed: no decision depends on them.

    `outputs` has by output the steps that it is computed from. A kernel of one node sees backlogs only: what
    they are for may be on other nodes.
    """

    def __init__(
        self, promises: StepPromises, outputs: Mapping[str, Collection[str]], unproven: Collection[str]
    ) -> None:
        self._promises = promises
        self._outputs = outputs
        self._unproven = unproven
        self._steps: list[StepTask] = []
        self.backlogs: deque[Backlog] = deque(maxlen=_KEPT)
        self.catching_up = False  # after a restart or a failed job: nothing is promised until all is done
        self.last: dict[str, Recovery] = {}  # by output: the last recovery, or the current one
        self.outlasted: set[str] = set()  # outputs with a recovery that took longer than promised

    def join(self, step: StepTask) -> None:
        self._steps.append(step)
        step.recoveries = self

    def of(self, step: str) -> list[Backlog]:
        """The backlogs of a step."""
        return [backlog for backlog in self.backlogs if backlog.step == step]

    def grew(self, backlog: Backlog) -> None:
        """A step's backlog has more files than before, or is new."""
        for place, known in enumerate(self.backlogs):
            if (known.step, known.since) == (backlog.step, backlog.since):
                self.backlogs[place] = backlog
                break
        else:
            self.backlogs.append(backlog)
        self._promise(backlog)

    def catches_up(self) -> None:
        """A step has to catch up with more than a file brings: its cost is not known."""
        self.catching_up = True
        for recovery in self._open().values():
            recovery.due = None

    def settle(self, now: int) -> None:
        """Steps were committed: outputs without recovery upstream have recovered."""
        if not self.backlogs and not self.catching_up:
            return
        recovering = {step.name for step in self._steps if step.recovering}
        for output, recovery in self._open().items():
            if recovering.isdisjoint(self._outputs[output]):
                recovery.ended = now
                if recovery.in_time is False:
                    self.outlasted.add(output)
        if self._outputs and not recovering:
            self.backlogs.clear()
        if not recovering:
            self.catching_up = False

    def broken(self, now: int) -> set[str]:
        """The outputs with a recovery that took longer than promised, or still does."""
        overdue = (name for name, each in self._open().items() if each.due is not None and each.due < now)
        return self.outlasted.union(overdue)

    def _open(self) -> dict[str, Recovery]:
        return {name: recovery for name, recovery in self.last.items() if recovery.ended is None}

    def _promise(self, grown: Backlog) -> None:
        """Promises an end to outputs downstream; one that was promised before is not promised earlier."""
        if not self._outputs:
            return
        dues = self._promises.dues(self.backlogs)
        for name in self._outputs.keys() & dues.keys():
            recovery, due = self.last.get(name), dues[name]
            if recovery is None or recovery.ended is not None:
                if grown.step not in self._outputs[name]:
                    continue  # only others are behind
                recovery = self.last[name] = Recovery(grown.last, None)
            if due is None or self.catching_up or name in self._unproven:
                recovery.due = None
            else:
                recovery.due = max(due, recovery.due or 0)


def recoveries_of(kernel: Kernel) -> StepRecoveries | None:
    """The recoveries of a kernel's steps; None if it has no steps."""
    found = (getattr(task, "recoveries", None) for task in kernel.tasks)
    return next((each for each in found if each is not None), None)
