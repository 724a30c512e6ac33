"""The loop of a run: driver, tracks and kinds of work, and the work of each tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from freshline.kernel.core.events import Event, Instruction
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.driver import LiveDriver, LoopHooks
from freshline.live.loop.kinds import Kinds
from freshline.live.loop.messages import Inbox, JobEnded, JobPutAside
from freshline.live.loop.tracks import Tracks
from freshline.live.loop.work import Work
from freshline.live.run.drain_control import DrainControl
from freshline.live.run.learned_plan import LearnedPlan
from freshline.live.run.quarantine_count import QuarantineCount
from freshline.live.run.run_options import RunOptions
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.housekeeping import Housekeeper, KeptTable
from freshline.live.tables.loading import Loading
from freshline.live.tables.run_context import RunContext, RunOpening
from freshline.live.tables.run_records import RunRecords
from freshline.planning.plan.plan import Plan
from freshline.spark.errors import spark_ended

_HOUSEKEEPING_MAX_S = 30


class RunLoop(LoopHooks):
    """Makes the driver and its hooks: for all kinds of work, learning, draining and housekeeping."""

    def __init__(
        self,
        opening: RunOpening,
        works: Sequence[Work],
        records: RunRecords,
        learned_plan: LearnedPlan,
        journal: Journal,
        options: RunOptions,
        stop: Callable[[str], None],
    ) -> None:
        self._opening = opening
        self._works = works
        self._records = records
        self._learned_plan = learned_plan
        self._drains = options.drain
        self.inbox = Inbox()
        self._quarantine = QuarantineCount(opening.setup.layout, options.quarantine, records.notes)
        self.loading = Loading(
            opening,
            records,
            self._quarantine.quarantine,
            options.files_max,
            self.inbox.post,
            lambda: self.tracks.busy + options.busy_beside,
        )
        kernel = opening.kernel
        # By track; clusters of a pool share Spark's pool.
        pools = [pool.name.partition("/")[0] for pool in kernel.pools for _ in range(pool.tracks)]
        context = RunContext(records, self.loading, self.inbox, self._tell, pools, self.plan)
        for work in works:
            records.reporter.sources.append(work.status)
            work.begin(context)
        kinds: Kinds = {job: kind for work in works for job, kind in work.kinds().items()}
        self.tracks = Tracks(len(pools), kinds, self._ended)
        warming = opening.resources.warming
        if warming is not None:
            warming.mind(lambda: self.tracks.idle)
        self.driver = LiveDriver(kernel, self.inbox, self.tracks, journal, records.observation, self)
        self.drain = DrainControl(works, self.inbox, records.troubles.attempts, self._tell, stop)
        databases = [opening.setup.control.ledger, opening.setup.history]
        self._housekeeper = Housekeeper(self._kept, databases, records.notes.note)
        self.on_status: Callable[[WarehouseStatus], None] | None = None
        self.published = records.reporter.status(kernel.now, kernel)

    def open(self, stack: ExitStack, is_abandoned: Callable[[], bool]) -> None:
        """Starts the threads of all kinds; the stack ends them."""
        stack.callback(self._finish_housekeeping, is_abandoned)
        for work in self._works:
            stack.callback(work.close)
            work.start()

    def plan(self) -> Plan:
        """The plan with the costs known by now."""
        return self._learned_plan.plan

    # -- what the driver calls -------------------------------------------------------------------------

    def look(self, now: int) -> None:
        for work in self._works:
            work.look(now)

    def carry_out(self, instruction: Instruction) -> None:
        done = any(work.carry_out(instruction) for work in self._works)
        assert done, f"no kind of work can do {instruction!r}"

    def let_go(self) -> None:
        for work in self._works:
            work.let_go()

    def tick(self, now: int, kernel: Kernel) -> None:
        self._publish(self._records.look(now, kernel))
        for work in self._works:
            work.tick(now)
        stopping = self.driver.stopping
        self._quarantine.look(now, stopping)
        if stopping:
            return  # the run starts nothing more
        if not self.drain.begun:
            self._learn(now, kernel)
        self._housekeeper.consider(now, kernel)
        if self._drains:
            self.drain.consider(now, kernel)

    def _learn(self, now: int, kernel: Kernel) -> None:
        """Passes costs that have become known to the kernel, with the bounds that follow."""
        before = self._learned_plan.plan
        for event in self._learned_plan.events(now, kernel):
            self._tell(event)
        if self._learned_plan.plan is not before:
            self._records.learn(self.plan())

    def _publish(self, status: WarehouseStatus) -> None:
        with suppress(OSError):  # a full disk; the file's own time shows that it is old
            status.write(self._opening.setup.control.status)
        self.published = status
        if self.on_status is not None:
            self.on_status(status)

    # -- what the parts of the loop call -----------------------------------------------------------

    def _tell(self, event: Event) -> None:
        self.driver.tell(event)

    def _ended(self, message: JobEnded | JobPutAside) -> None:
        """Receives the end of a job from a track's thread; if Spark has ended, that is the reason."""
        if isinstance(message, JobEnded) and isinstance(message.outcome, Exception):
            gone = spark_ended(self._opening.resources.session)
            message = message if gone is None else replace(message, outcome=gone)
        self.inbox.post(message)

    def _kept(self) -> dict[str, KeptTable]:
        return {name: table for work in self._works for name, table in work.kept().items()}

    def _finish_housekeeping(self, is_abandoned: Callable[[], bool]) -> None:
        for _ in range(10 * _HOUSEKEEPING_MAX_S):  # in short waits, so that it can be interrupted
            self._housekeeper.finish(0.0 if is_abandoned() else 0.1)
