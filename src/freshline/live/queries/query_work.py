"""Everything of a run that is there for its queries, and how it hangs together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from freshline.base.errors import NOWHERE, DefinitionErrors, InputError
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.kinds import JobKind
from freshline.live.queries.iteration_worker import IterationJudge, IterationWorker, QueryAnswering
from freshline.live.queries.known_costs import QueryMeasurer
from freshline.live.queries.live_queries import LiveQueries
from freshline.live.queries.query_tables import QueryTables
from freshline.live.queries.query_warm_up import warm_up
from freshline.live.queries.result_files import ResultFiles
from freshline.live.queries.window_rows import WindowRows
from freshline.live.run.opening import RunResources, RunSetup
from freshline.live.tables.housekeeping import KeptTable
from freshline.planning.plan.plan import Plan
from freshline.spark.answering.window_reading import PreparedQuery, session_for_queries


class QueryWork:
    """Makes these parts. `prepare` may be asked by any thread, everything else by the driver's."""

    def __init__(self, site: RunSetup, plan: Plan, kernel: Kernel, opened: RunResources) -> None:
        warehouse = opened.part.local
        self._opened = opened
        tables = opened.tables.readable
        self.results = ResultFiles(site.control.results)
        self.rows = WindowRows(lambda table: tables[table].files)
        self.queries = LiveQueries(
            warehouse,
            plan,
            kernel,
            QueryMeasurer(self.rows),
            opened.history,
            self._prepared(warehouse, {}),
        )
        self._tables = QueryTables(site.layout)
        self._answering = QueryAnswering(self.results, self._tables)

    def warm_up(self) -> None:
        """Before the run: costs that are not known yet are learned from what is there."""
        session = session_for_queries(self._opened.session)
        warm_up(session, self.queries.admitted)

    def kind(self, pools: Sequence[str], stop: Callable[[str], None]) -> JobKind:
        """How iterations are done live; `pools` are by track."""
        session = self._opened.session

        def worker(track: int) -> IterationWorker:
            return IterationWorker(session, pools[track], track, self._answering)

        return JobKind(worker, IterationJudge(self.queries, stop))

    def kept(self) -> dict[str, KeptTable]:
        """The tables of answers that are to be looked after."""
        return self._tables.kept()

    def prepare(self, edited: Warehouse) -> Mapping[str, PreparedQuery]:
        """The queries of an edited file as Spark understands them. InputError where it does not."""
        return self._prepared(edited, self.queries.running)

    def _prepared(self, warehouse: Warehouse, known: Mapping[str, PreparedQuery]) -> dict[str, PreparedQuery]:
        prepared: dict[str, PreparedQuery] = {}
        errors: list[InputError] = []
        session: SparkSession | None = None
        for name, query in warehouse.queries.items():
            there = known.get(name)
            if there is not None and replace(there.query, place=NOWHERE) == replace(query, place=NOWHERE):
                prepared[name] = there
                continue
            session = session or self._opened.session.newSession()
            opened = self._opened
            try:
                prepared[name] = PreparedQuery(
                    session, warehouse, query, opened.tables.readable, opened.schemas
                )
            except InputError as error:
                errors.append(error)
        if errors:
            raise errors[0] if len(errors) == 1 else DefinitionErrors(errors)
        return prepared
