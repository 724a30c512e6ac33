"""Everything of a run that is there since other nodes run beside it, and for the steps that it has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from freshline.base.duration import SECOND
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.kinds import JobKind
from freshline.live.loop.messages import RemoteCommit
from freshline.live.nodes.node_drain import DrainedTables
from freshline.live.nodes.node_statuses import as_one, read_statuses
from freshline.live.nodes.step_figures import StepFigures
from freshline.live.nodes.step_worker import StepJudge, StepWorker
from freshline.live.nodes.table_follower import TableFollower
from freshline.live.queries.result_files import newest
from freshline.live.run.keeper import Keeper
from freshline.live.run.opening import RunResources, RunSetup
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.update_worker import SparkWorker
from freshline.storage.control.node_runs import RUNS_TOLD, tell_runs

_TELL_EVERY_US: Final = 5 * SECOND


class NodeWork:
    """Makes these parts. Of a warehouse without nodes there is nothing in them."""

    def __init__(self, site: RunSetup, opened: RunResources, keeper: Keeper) -> None:
        self._warehouse, self._layout, self._node = site.warehouse, site.layout, site.node
        self._control = site.control
        self._tell_costs_at = 0
        self._opened = opened
        local = opened.part.local
        self._outputs = {name for name, step in local.steps.items() if step.deadline_us is not None}
        self.following = TableFollower(opened.tables.followed, keeper.notes, RemoteCommit)
        self.book = StepFigures(local, site.node or "", keeper.troubles)
        self.judge = StepJudge(self.book, keeper.failures)
        others = {name: site.layout.control(name) for name in site.warehouse.nodes if name != site.node}
        self._drained = DrainedTables(opened.part, site.control, others, opened.tables.readable)
        keeper.reporting.of_node(site.node, self.book, opened.placed)

    @property
    def shortcomings(self) -> list[str]:
        """What the placement of steps falls short of."""
        return [] if self._opened.placed is None else self._opened.placed.shortcomings

    @property
    def answers_for_all(self) -> bool:
        """Whether whoever asks the warehouse asks this run."""
        return self._node is None or self._node == next(iter(self._warehouse.nodes))

    def kind(self, worker: Callable[[int], SparkWorker]) -> JobKind:
        """How jobs of steps are done live."""
        tables = self._opened.tables.tables
        return JobKind(lambda track: StepWorker(worker(track), tables, self._outputs), self.judge)

    def nothing_more_comes(self, kernel: Kernel, is_given_up: Callable[[str], bool]) -> bool:
        """Whether, of a warehouse that drains, the tables of other nodes that are read here have ended."""
        return self._node is None or self._drained.are_sources_final(kernel, is_given_up)

    def waits_in_vain(self, kernel: Kernel, now: int) -> str | None:
        """Why the end of another node, for which this one that drains waits, will never come."""
        return None if self._node is None else self._drained.waits_in_vain(kernel, now)

    def announce_drain(self) -> None:
        """Other nodes may wait for this one: it drains too."""
        if self._node is not None:
            self._drained.announce()

    def tell_costs(self, now: int) -> None:
        """Now and then, what jobs took here, for whoever plans: of steps as on a node of speed 1."""
        if self._node is None or now < self._tell_costs_at:
            return
        self._tell_costs_at = now + _TELL_EVERY_US
        local, speed = self._opened.part.local, self._warehouse.nodes[self._node].speed
        runs = {}
        for name in local.stored:
            past = self._opened.history.runs(name)[-RUNS_TOLD:]
            scale = speed if name in local.steps else 1
            runs[name] = [run._replace(duration_us=int(run.duration_us * scale)) for run in past]
        with suppress(OSError):  # a full disk: told the next time
            tell_runs(self._control.runs, runs)

    def results(self, query: str) -> dict[str, Any] | None:
        """A query's newest answer, on whichever node it is answered."""
        return newest(self._layout.controls(self._warehouse.nodes), query)

    def status_of_all(self, own: WarehouseStatus) -> WarehouseStatus:
        """The warehouse's, by what other nodes have told last and by this one's."""
        if self._node is None:
            return own
        others = [each for each in read_statuses(self._warehouse, self._layout) if each.node != self._node]
        return as_one(self._warehouse, [own, *others])
