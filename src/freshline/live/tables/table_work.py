"""Tables as a kind of work in a live run: their files are found, and loaded or discarded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from freshline.kernel.requests.events import UpdateDiscarded
from freshline.kernel.tables.update import Update
from freshline.landing.directories import missing_directories
from freshline.live.loop.kinds import JobKind, Kinds
from freshline.live.loop.work import Work
from freshline.live.tables.housekeeping import KeptTable
from freshline.live.tables.run_context import RunContext
from freshline.planning.costs.bounds import average_us
from freshline.planning.plan.advice import counted


class TableWork(Work):
    """The tables that have a period. `RunRecords` makes their rows of the status."""

    def begin(self, run: RunContext) -> None:
        self._run = run
        self._kept = run.loading.kept()
        watch, judge = run.loading.watch, run.records.judge
        judge.on_loaded = watch.loaded
        judge.on_discarded = self._discarded
        self._discarding = run.loading.discarding

    def said(self) -> Sequence[str]:
        return missing_directories(self.opening.setup.warehouse, self.opening.setup.landing)

    def start(self) -> None:
        self._run.loading.watch.start(self._run.inbox.post)

    def kinds(self) -> Kinds:
        run = self._run
        return {Update: JobKind(lambda track: run.loading.worker(run.pools[track], track), run.records.judge)}

    def look(self, now: int) -> None:
        self._discarding.look(now, self.opening.kernel)

    def kept(self) -> Mapping[str, KeptTable]:
        return self._kept

    def expects_more(self, is_given_up: Callable[[str], bool]) -> bool:
        return not self._run.loading.watch.is_quiet()

    def left_behind(self, is_given_up: Callable[[str], bool]) -> Sequence[str]:
        watch, reason = self._run.loading.watch, self._run.records.troubles.reason
        said = []
        for name in filter(is_given_up, self.opening.resources.part.local.stored):
            files = watch.waiting_for(name)
            rest = f", and {counted(files, 'file')} left," if files else ""
            said.append(f"{name} was given up{rest} after failures: {reason(name)}")
        return [*said, *watch.unread()]

    def close(self) -> None:
        self._run.loading.watch.stop()

    def _discarded(self, table: str, files: int) -> None:
        """Passes the time that was saved to the pool's policy."""
        definition = self._run.plan().warehouse.tables[table]
        if definition.cost is not None:  # otherwise it may not be known yet
            cost_us = average_us(definition.cost, definition.period_us)
            self._run.tell(UpdateDiscarded(table, files * cost_us))
