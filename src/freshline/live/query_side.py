"""Everything of a run that is there for its queries, and how it hangs together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from freshline.definitions.errors import NOWHERE, DefinitionErrors, InputError
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.kernel import Kernel
from freshline.live.housekeeping import Kept
from freshline.live.iterations import Answering, IterationJudge, IterationWorker
from freshline.live.kinds import Kind
from freshline.live.opening import Opened, Site
from freshline.live.queries import Queries
from freshline.live.query_book import QueryBook
from freshline.live.query_costs import Measuring
from freshline.live.query_tables import QueryTables
from freshline.live.query_warm_up import warm_up
from freshline.live.results import Results
from freshline.live.window_rows import WindowRows
from freshline.plan.plan import Plan
from freshline.spark.iteration import PreparedQuery, session_for_queries


class QuerySide:
    """Makes these parts. `prepare` may be asked by any thread, everything else by the driver's."""

    def __init__(self, site: Site, plan: Plan, kernel: Kernel, opened: Opened) -> None:
        warehouse = opened.part.local
        self._opened = opened
        tables = opened.tables.readable
        self.results = Results(site.control.results)
        self.rows = WindowRows(lambda table: tables[table].files)
        book = QueryBook(opened.history)
        self.queries = Queries(
            warehouse,
            plan,
            kernel,
            book,
            Measuring(self.rows, book),
            opened.history,
            self._prepared(warehouse, {}),
        )
        self._tables = QueryTables(site.layout)
        self._answering = Answering(book, self.results, self._tables)

    def warm_up(self) -> None:
        """Before the run: costs that are not known yet are learned from what is there."""
        session = session_for_queries(self._opened.session)
        warm_up(session, self._answering.book, self.queries.asked)

    def kind(self, pools: Sequence[str], stop: Callable[[str], None]) -> Kind:
        """How iterations are done live; `pools` are by track."""
        session = self._opened.session

        def worker(track: int) -> IterationWorker:
            return IterationWorker(session, pools[track], track, self._answering)

        return Kind(worker, IterationJudge(self.queries, stop))

    def kept(self) -> dict[str, Kept]:
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
