"""Continuous queries as a kind of work in a live run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from freshline.base.errors import NOWHERE, DefinitionErrors, InputError
from freshline.definitions.sections.queries import Query
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.queries.iteration import Iteration
from freshline.live.loop.kinds import JobKind, Kinds
from freshline.live.loop.work import Work
from freshline.live.queries.edit_applier import EditApplier
from freshline.live.queries.iteration_worker import IterationJudge, IterationWorker, QueryAnswering
from freshline.live.queries.known_costs import QueryMeasurer
from freshline.live.queries.live_queries import LiveQueries
from freshline.live.queries.query_status import QUERIES
from freshline.live.queries.query_tables import QueryTables
from freshline.live.queries.query_warm_up import warm_up
from freshline.live.queries.result_files import ResultFiles
from freshline.live.queries.window_rows import WindowRows
from freshline.live.tables.housekeeping import KeptTable
from freshline.live.tables.run_context import RunContext, RunOpening
from freshline.spark.answering.window_reading import PreparedQuery, session_for_queries


class QueryWork(Work):
    """The continuous queries. Any thread may call `prepare`."""

    def __init__(self, opening: RunOpening) -> None:
        super().__init__(opening)
        setup, opened = opening.setup, opening.resources
        tables = opened.tables.readable
        self.results = ResultFiles(setup.control.results)
        self.rows = WindowRows(lambda table: tables[table].files)
        self.queries = LiveQueries(
            opened.part,
            opening.plan,
            opening.kernel,
            QueryMeasurer(self.rows),
            opened.history,
            self._prepared(opened.part.local.queries, {}),
        )
        self._tables = QueryTables(setup.layout)
        self._answering = QueryAnswering(self.results, self._tables)

    def warm_up(self) -> None:
        """Learns unknown costs from the present data."""
        session = session_for_queries(self.opening.resources.session)
        warm_up(session, self.queries.admitted)

    def begin(self, run: RunContext) -> None:
        self._pools = run.pools
        self.queries.attach(run.tell)
        run.records.observation.on_rows = self.rows.loaded
        setup = self.opening.setup
        self._edits = EditApplier(
            setup.warehouse, run.inbox.post, self.prepare, self.queries.decide, setup.node
        )

    def stop_serving(self) -> None:
        self._edits.close()

    def kinds(self) -> Kinds:
        session, pools = self.opening.resources.session, self._pools

        def worker(track: int) -> IterationWorker:
            return IterationWorker(session, pools[track], track, self._answering)

        return {Iteration: JobKind(worker, IterationJudge(self.queries, self.opening.lose))}

    def look(self, now: int) -> None:
        self.queries.look(now)

    def tick(self, now: int) -> None:
        self.queries.warn()

    def status(self, now: int, kernel: Kernel) -> Mapping[str, tuple[Any, ...]]:
        return {QUERIES.name: self.queries.statuses()}

    def said(self) -> Sequence[str]:
        return [*self.queries.refusals(), *self._held_back()]

    def _held_back(self) -> list[str]:
        """The queries of this node that a slow table holds back, by the plan."""
        own = self.opening.resources.part.local.queries
        slow = {each.name: each.held_back for each in self.opening.plan.queries if each.name in own}
        return [held.sentence(name) for name, held in slow.items() if held is not None]

    def kept(self) -> Mapping[str, KeptTable]:
        return self._tables.kept()

    def serves(self) -> Mapping[str, Callable[..., Any]]:
        return {"apply": self._edits.apply}

    def prepare(self, edited: Warehouse) -> Mapping[str, PreparedQuery]:
        """The queries of an edited file, analysed by Spark. InputError if Spark rejects one."""
        return self._prepared(edited.queries, self.queries.running)

    def _prepared(
        self, queries: Mapping[str, Query], known: Mapping[str, PreparedQuery]
    ) -> dict[str, PreparedQuery]:
        """The queries as Spark analyses them. They may read tables of other nodes."""
        warehouse, opened = self.opening.setup.warehouse, self.opening.resources
        prepared: dict[str, PreparedQuery] = {}
        errors: list[InputError] = []
        session: SparkSession | None = None
        for name, query in queries.items():
            there = known.get(name)
            if there is not None and replace(there.query, place=NOWHERE) == replace(query, place=NOWHERE):
                prepared[name] = there
                continue
            session = session or opened.session.newSession()
            try:
                prepared[name] = PreparedQuery(
                    session, warehouse, query, opened.tables.readable, opened.schemas
                )
            except InputError as error:
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else DefinitionErrors(errors)
        return prepared
