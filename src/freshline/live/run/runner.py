"""A warehouse running on Spark: everything that belongs to it, opened and closed in order."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from freshline.base import signals
from freshline.base.clock import clock
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.live import kinds_of_work
from freshline.live.loop.journal import journal_of
from freshline.live.run.core_check import core_troubles
from freshline.live.run.learned_plan import LearnedPlan
from freshline.live.run.opening import open_site
from freshline.live.run.run_end import RunEnd
from freshline.live.run.run_loop import RunLoop
from freshline.live.run.run_options import RunOptions, run_setup
from freshline.live.run.serving import serve
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.run_context import RunOpening
from freshline.live.tables.run_records import RunRecords
from freshline.planning.plan.plan import Plan
from freshline.spark.errors import sentence

_logger = logging.getLogger(__name__)
_CANCELLED_MAX_S = 2.0
# The first signal lets running jobs end within this time; the rest of the 10 s is for closing.
_JOBS_AFTER_SIGNAL_S = 3.0
_DEFAULTS = RunOptions()
W = TypeVar("W")


class Runner:
    """Holds the storage's lease, the Spark session, the tables and the loop. Use it in a `with`.

    with Runner(load("freshline.yml"), folder, storage, RunOptions(drain=True)) as runner:
        runner.run()
    """

    def __init__(
        self, warehouse: Warehouse, folder: Path, storage: Path, options: RunOptions = _DEFAULTS
    ) -> None:
        self._options = options
        self._setup = run_setup(warehouse, folder, storage, options)
        self.layout, self.control = self._setup.layout, self._setup.control
        self.run_id = f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid4().hex[:6]}"
        self._stack = ExitStack()
        self._end = RunEnd()
        self._loop: RunLoop | None = None
        self._on_status: Callable[[WarehouseStatus], None] | None = None

    # -- opening and closing -----------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException as error:  # also by a signal: closes what is open
            self._close(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close(error)
        except (OSError, sqlite3.Error) as failure:
            # A full disk, for example: all is closed, the commits stand, and the run still has its summary.
            _logger.warning("at the end of run %s: %s", self.run_id, sentence(failure))

    def _close(self, error: BaseException | None) -> None:
        """Closes the run; signals do not interrupt that. If a signal ended the run, it waits for nothing."""
        interrupted = error is not None and not isinstance(error, Exception)
        self._end.interrupted = interrupted
        self._end.abandoned = self._end.abandoned or interrupted
        with signals.held() if interrupted else nullcontext():
            self._stack.close()

    def _open(self) -> None:
        setup, options = self._setup, self._options
        resources = open_site(setup, self.run_id, self._stack, self._end, self._lose, options.on_start)
        self.session = resources.session
        self.tables, self.readable = resources.tables.tables, resources.tables.readable
        learned_plan = LearnedPlan(setup.warehouse, resources.history, resources.placed)
        plan = learned_plan.plan
        freshness = {name: table.freshness for name, table in self.readable.items()}
        kernel = assemble(plan, 0, freshness, batches=options.batches, begin=False, node=setup.node)
        self.kernel = kernel
        opening = RunOpening(setup, resources, plan, kernel, self._lose)
        self.works = kinds_of_work.works(opening)
        cores = core_troubles(setup.warehouse, setup.node, resources.session)
        self.said = (*resources.tables.said, *(said for work in self.works for said in work.said()), *cores)
        if setup.warm != "none":
            for work in self.works:
                work.warm_up()
        # Only now: iterations that fell due during the warm-up would all be late.
        now = clock()
        kernel.begin(now)
        local = resources.part.local
        self.records = RunRecords(
            local, plan, self.run_id, now, self._lose, warmth=resources.warmth, node=setup.node
        )
        for trouble in cores:
            self.records.notes.note(now, trouble)
        if resources.died_at is not None:
            self.records.notes.died(resources.died_at, now)
        self.records.observation.resume(kernel)
        log = self._stack.enter_context(
            (self.control.logs / f"{self.run_id}.jsonl").open("w", encoding="utf-8", buffering=1 << 16)
        )
        journal = journal_of(
            log,
            self.run_id,
            now,
            freshness,
            plan,
            unknown=learned_plan.unknown,
            batches=options.batches,
            node=setup.node,
        )
        loop = RunLoop(opening, self.works, self.records, learned_plan, journal, options, self.stop)
        loop.on_status = self._on_status
        self._loop = loop
        loop.open(self._stack, lambda: self._end.abandoned)
        serve(self.works, lambda: loop.published, self.control, self.records.notes, self._stack)

    # -- running -----------------------------------------------------------------------------------------

    def run(self, for_us: int | None = None) -> None:
        """Runs until stopped, for a duration, or (draining) until nothing is left to load."""
        loop = self.loop
        ended = not self.lost and loop.driver.run(None if for_us is None else clock() + for_us)
        self._end.abandoned = self._end.abandoned or self._end.signals > 0
        if not ended:
            with suppress(Py4JError, OSError):  # Spark may have ended
                self.session.sparkContext.cancelAllJobs()
            # A job that is about to commit can do so while this run holds the lease.
            loop.tracks.finish_cancelled(_CANCELLED_MAX_S if self._end.signals < 2 else 0.0)

    def interrupt(self, why: str) -> None:
        """Ends the run for a signal: the first lets running jobs end for some seconds, the second does not.

        The signal's handler calls it.
        """
        self._end.signals += 1
        if self._end.signals > 1:
            self.abandon()
        else:
            self.stop(why)
            if self._loop is not None:
                self._loop.tracks.hurry(_JOBS_AFTER_SIGNAL_S)

    def stop(self, why: str) -> None:
        self._end.because = self._end.because or why
        if self._loop is not None:
            self._loop.driver.stop()

    def abandon(self) -> None:
        """Stops waiting for jobs: the next run loads what they have not committed."""
        self._end.abandoned = True
        if self._loop is not None:
            self._loop.driver.abandon()

    def _lose(self, why: str) -> None:
        self._end.lost = True
        self._end.because = why
        self.stop(why)

    # -- information -----------------------------------------------------------------------------------

    @property
    def loop(self) -> RunLoop:
        assert self._loop is not None, "the runner is not open"
        return self._loop

    @property
    def on_status(self) -> Callable[[WarehouseStatus], None] | None:
        """A callback for each status, twice a second."""
        return self._on_status

    @on_status.setter
    def on_status(self, hear: Callable[[WarehouseStatus], None] | None) -> None:
        self._on_status = hear
        if self._loop is not None:
            self._loop.on_status = hear

    def status(self) -> WarehouseStatus:
        return self.records.reporter.status(max(clock(), self.kernel.now), self.kernel)

    @property
    def plan(self) -> Plan:
        """The plan with the costs known by now."""
        return self.loop.plan()

    def work(self, kind: type[W]) -> W:
        return next(work for work in self.works if isinstance(work, kind))

    @property
    def shortcomings(self) -> list[str]:
        """Sentences about definitions that this run cannot keep."""
        return [sentence for work in self.works for sentence in work.shortcomings()]

    @property
    def incomplete(self) -> bool:
        """Whether a draining run ended with data left to load, here or on another node."""
        return self.loop.drain.incomplete

    @property
    def stopped_because(self) -> str | None:
        return self._end.because

    @property
    def lost(self) -> bool:
        """Whether it had to stop: another runner has the storage, or Spark has ended."""
        return self._end.lost
