"""Steps in a live run, and the other nodes that run beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from freshline.base.duration import SECOND
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.steps.job import StepJob
from freshline.kernel.steps.task import steps_of
from freshline.live.loop.kinds import JobKind, Kinds
from freshline.live.loop.messages import RemoteCommit
from freshline.live.loop.work import Work
from freshline.live.nodes.node_drain import DrainedTables
from freshline.live.nodes.node_statuses import as_one, read_statuses
from freshline.live.nodes.step_figures import StepFigures
from freshline.live.nodes.step_status import OUTPUTS, STEPS, placement_rows
from freshline.live.nodes.step_worker import StepJudge, StepWorker
from freshline.live.nodes.table_follower import TableFollower
from freshline.live.queries.result_files import newest
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.run_context import RunContext, RunOpening
from freshline.storage.control.node_runs import RUNS_TOLD, tell_runs

_TELL_EVERY_US: Final = 5 * SECOND


class NodeWork(Work):
    """The steps of this node and its connection to other nodes. Without nodes it is empty."""

    def __init__(self, opening: RunOpening) -> None:
        super().__init__(opening)
        setup, resources = opening.setup, opening.resources
        self._warehouse, self._layout, self._node = setup.warehouse, setup.layout, setup.node
        self._tell_costs_at = 0
        local = resources.part.local
        self._placement = placement_rows(resources.placed)
        self._outputs = {name for name, step in local.steps.items() if step.deadline_us is not None}
        others = {name: setup.layout.control(name) for name in setup.warehouse.nodes if name != setup.node}
        self._drained = DrainedTables(resources.part, setup.control, others, resources.tables.readable)

    def begin(self, run: RunContext) -> None:
        self._run = run
        resources, records = self.opening.resources, run.records
        self._following = TableFollower(resources.tables.followed, records.notes, RemoteCommit)
        self.book = StepFigures(resources.part.local, self._node or "", records.troubles)
        self.judge = StepJudge(self.book, records.failures, records.notes)
        self.judge.on_loaded = run.loading.watch.loaded
        self.judge.on_committed = records.observation.rows_came

    def start(self) -> None:
        self._following.start(self._run.inbox.post)

    def close(self) -> None:
        self._following.stop()

    def kinds(self) -> Kinds:
        run, tables = self._run, self.opening.resources.tables.tables

        def worker(track: int) -> StepWorker:
            return StepWorker(run.loading.worker(run.pools[track], track), tables, self._outputs)

        return {StepJob: JobKind(worker, self.judge)}

    def tick(self, now: int) -> None:
        self._tell_costs(now)

    def status(self, now: int, kernel: Kernel) -> Mapping[str, tuple[Any, ...]]:
        return {
            STEPS.name: self.book.steps(kernel),
            OUTPUTS.name: self.book.outputs(),
            **self._placement,
        }

    def shortcomings(self) -> Sequence[str]:
        """Sentences about deadlines that the placement of steps does not keep."""
        placed = self.opening.resources.placed
        return () if placed is None else placed.shortcomings

    def serves(self) -> Mapping[str, Callable[..., Any]]:
        """The first node answers clients for all nodes."""
        if self._node is not None and self._node != next(iter(self._warehouse.nodes)):
            return {}
        return {"status": self._status_of_all, "results": self._results}

    def announce_drain(self) -> None:
        """Reports that this node drains, since other nodes may wait for it."""
        if self._node is not None:
            self._drained.announce()

    def waits_in_vain(self, now: int) -> str | None:
        kernel = self.opening.kernel
        return None if self._node is None else self._drained.waits_in_vain(kernel, now)

    def expects_more(self, is_given_up: Callable[[str], bool]) -> bool:
        """Whether tables of other nodes that this node reads are not final yet."""
        kernel = self.opening.kernel
        return self._node is not None and not self._drained.are_sources_final(kernel, is_given_up)

    def is_at_work(self, is_given_up: Callable[[str], bool]) -> bool:
        steps = steps_of(self.opening.kernel)
        return any(step.at_work and not is_given_up(step.name) for step in steps)

    def _tell_costs(self, now: int) -> None:
        """Writes the durations of jobs every few seconds, for `plan` and `place`; steps at speed 1."""
        if self._node is None or now < self._tell_costs_at:
            return
        self._tell_costs_at = now + _TELL_EVERY_US
        resources = self.opening.resources
        local, speed = resources.part.local, self._warehouse.nodes[self._node].speed
        runs = {}
        for name in local.stored:
            past = resources.history.runs(name)[-RUNS_TOLD:]
            scale = speed if name in local.steps else 1
            runs[name] = [run._replace(duration_us=int(run.duration_us * scale)) for run in past]
        with suppress(OSError):  # a full disk: the next call writes it
            tell_runs(self.opening.setup.control.runs, runs)

    def _results(self, query: str) -> dict[str, Any] | None:
        """A query's newest answer from any node."""
        return newest(self._layout.controls(self._warehouse.nodes), query)

    def _status_of_all(self, own: WarehouseStatus) -> WarehouseStatus:
        """The warehouse's status, from this node's and the last ones of the others."""
        if self._node is None:
            return own
        others = [each for each in read_statuses(self._warehouse, self._layout) if each.node != self._node]
        return as_one(self._warehouse, [own, *others])
