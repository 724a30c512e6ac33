"""When steps have recovered from the backlogs of their feeds, by what is known of these at an instant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from freshline.planning.plan.step_recovery import StepRecovery


class Backlog(NamedTuple):
    """Files of a feed that came sooner one after another than declared, as a step that loads them saw it."""

    step: str
    since: int  # when the first came
    last: int  # when the last came
    files: int  # with one more than those that were too many


class StepPromises:
    """The instants by which backlogs are done (docs/placement.md)."""

    def __init__(self, recovery: StepRecovery) -> None:
        self._recovery = recovery

    def dues(self, backlogs: Iterable[Backlog]) -> dict[str, int | None]:
        """By step downstream of the last backlogs: when it has recovered. None: nothing is promised.

        Backlogs count together if one came before the others were proven to be done.
        """
        group: list[Backlog] = []
        dues: dict[str, int | None] = {}
        for backlog in sorted(backlogs, key=lambda each: (each.since, each.step)):
            ends = list(dues.values())
            if any(end is None or end >= backlog.since for end in ends):
                group.append(backlog)
            else:
                group = [backlog]
            dues = self._dues(group)
        return dues

    def _dues(self, group: Sequence[Backlog]) -> dict[str, int | None]:
        """The promises for backlogs that count together."""
        steps = self._recovery.warehouse.steps
        by_step: dict[str, int] = {}
        for each in group:
            by_step[each.step] = by_step.get(each.step, 0) + each.files
        files: dict[str, int] = {}
        for step, number in by_step.items():  # steps that load the same feed see the same files
            feed = steps[step].feed
            assert feed is not None, f"{step} loads no feed"
            files[feed] = max(number, files.get(feed, 0))
        since, last = min(each.since for each in group), max(each.last for each in group)
        promises_us = self._recovery.promises_us(files, last - since)
        return {name: None if us is None else since + us for name, us in promises_us.items()}
