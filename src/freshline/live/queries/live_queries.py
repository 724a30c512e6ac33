"""The queries of a run: which are admitted, which come and go, and when they are measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from freshline.base.duration import seconds
from freshline.definitions.sections.queries import Query
from freshline.kernel.assembly.query_tracks import asked_of, track_name
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER
from freshline.kernel.queries.events import LoadMeasured
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.queries.membership import QueryAdded, QueryRemoved
from freshline.kernel.queries.rescheduling import Rescheduling
from freshline.kernel.queries.shedding import shedding_of
from freshline.kernel.queries.task import QueryTask, queries_of
from freshline.live.queries.held_back import HeldBackLog
from freshline.live.queries.known_costs import QueryMeasurer
from freshline.live.queries.query_figures import IterationResult
from freshline.live.queries.query_status import QueryState, QueryStatus
from freshline.live.queries.running_query import RunningQuery, running_query
from freshline.live.tables.node_share import NodeShare
from freshline.planning.analysis.admission import QueryRefusal, refusal, track_for
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.costs.learned_queries import with_known_costs
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.query_loads import query_loads
from freshline.spark.answering.window_reading import PreparedQuery
from freshline.storage.control.history import History

Tell = Callable[[QueryAdded | QueryRemoved | LoadMeasured], None]


class LiveQueries:
    """The state of each query beyond the kernel's. Only the driver's thread uses it."""

    def __init__(
        self,
        part: NodeShare,
        plan: Plan,
        kernel: Kernel,
        measuring: QueryMeasurer,
        history: History,
        prepared: Mapping[str, PreparedQuery],
    ) -> None:
        self._warehouse = part.whole  # as declared: queries may read tables of other nodes
        self._kernel = kernel
        self._measuring = measuring
        self._history = history
        self._tell: Tell = lambda event: None
        self._admitted: dict[str, RunningQuery] = {}  # in the order of admission
        self._refused: dict[str, tuple[Query, QueryRefusal]] = {}
        self._reschedulings = {
            pool.name: self._rescheduling(pool.name) for pool in kernel.pools if shedding_of(pool)
        }
        self._due_at = dict.fromkeys(self._reschedulings, kernel.now)  # the time of the next measurement
        for task in queries_of(kernel):
            task.asked = self._admit(RunningQuery.of(task.asked, prepared[task.name], history))
        for planned in plan.queries:
            if planned.refusal is not None and planned.name in part.local.queries:
                self._refused[planned.name] = (part.local.queries[planned.name], planned.refusal)
        self._running = {name: query.prepared for name, query in self._admitted.items()}
        self._held_back = HeldBackLog()

    def attach(self, tell: Tell) -> None:
        """`tell` passes events to the kernel."""
        self._tell = tell

    @property
    def running(self) -> Mapping[str, PreparedQuery]:
        """The admitted queries. Any thread may read the mapping: it is replaced, never changed."""
        return self._running

    @property
    def admitted(self) -> list[RunningQuery]:
        return [*self._admitted.values()]

    # -- which come and go ------------------------------------------------------------------------------

    def decide(self, edited: Mapping[str, PreparedQuery], now: int) -> dict[str, Any]:
        """Applies an edited file; returns the outcome for each query. An edited query is a new one."""
        unchanged = [name for name in edited if self._running.get(name) is edited[name]]
        removed = [name for name in self._admitted if name not in unchanged]
        for name in removed:
            del self._admitted[name]
            self._tell(QueryRemoved(name))
        self._refused.clear()
        for name, prepared in edited.items():
            if name not in unchanged:
                self._comes(prepared)
        self._running = {name: query.prepared for name, query in self._admitted.items()}
        return {
            "admitted": [name for name in edited if name in self._admitted and name not in unchanged],
            "refused": [
                {"name": name, "reason": refused.reason, "period_least": seconds(refused.period_least_us)}
                for name, (_, refused) in self._refused.items()
            ],
            "removed": removed,
            "unchanged": unchanged,
        }

    def _comes(self, prepared: PreparedQuery) -> None:
        """Admits a query to the least loaded track where it fits, or refuses it."""
        query = prepared.query
        names = [
            track_name(query.pool, number + 1) for number in range(self._warehouse.pools[query.pool].tracks)
        ]
        if names[0] not in {pool.name for pool in self._kernel.pools}:
            reason = f"pool {query.pool} was empty when the run began, and is ready for tables only"
            self._refused[query.name] = (
                query,
                QueryRefusal(query.name, f"{reason}: restart the run", None),
            )
            return
        loads = self._loads()
        tracks = [[load for other, load in loads if other == name] for name in names]
        load = self._load_of(query)
        track = track_for(load, tracks)
        if track is None:
            self._refused[query.name] = (query, refusal(load, tracks))
            return
        asked = RunningQuery.of(asked_of(query, load, track), prepared, self._history)
        self._tell(QueryAdded(self._admit(asked)))

    def _admit(self, query: RunningQuery) -> RunningQuery:
        self._admitted[query.name] = query
        self._measuring.watch(query.prepared.query)
        return query

    def _loads(self) -> list[tuple[str, QueryLoad]]:
        """The loads of admitted queries with their pools, as measured last or as admitted."""
        at_work = {task.name: task for task in queries_of(self._kernel)}
        loads = []
        for name, asked in self._admitted.items():
            task = at_work.get(name)
            known = task is not None and task.asked is asked
            loads.append((asked.pool, task.load if task and known else asked.load(asked.measure)))
        return loads

    def _load_of(self, query: Query) -> QueryLoad:
        """The load of a new query beside the present ones."""
        queries = {name: query.prepared.query for name, query in self._admitted.items()}
        among = replace(self._warehouse, queries={**queries, query.name: query})
        loads = query_loads(with_known_costs(among, self._history), self._warehouse.pools[query.pool])
        return next(load for load in loads if load.name == query.name)

    # -- measuring -----------------------------------------------------------------------------------------

    def look(self, now: int) -> None:
        """Measures the queries that are due, before a call of the kernel."""
        for pool, due_at in self._due_at.items():
            if due_at <= now:
                self._measure(pool, now)

    def _measure(self, pool: str, now: int) -> None:
        # Leaving queries are left out: another may have the name when the event reaches the kernel.
        tasks = [task for task in queries_of(self._kernel) if task.pool.name == pool and self._is_there(task)]
        if not tasks:
            return  # it stays due until a query comes
        rescheduling = self._reschedulings[pool]
        rescheduling.done()
        next_at = rescheduling.next_at(now, [task.stride_us for task in tasks])
        self._due_at[pool] = NEVER if next_at is None else next_at
        shortest_us = min(task.deadline_us for task in tasks)
        measures = {task.name: self._measuring.measure(task, now, shortest_us) for task in tasks}
        self._tell(LoadMeasured(measures))

    def _rescheduling(self, track: str) -> Rescheduling:
        defined = self._warehouse.pools[track.rpartition("/")[0]]
        return Rescheduling(defined.rescheduling, defined.threshold)

    # -- how iterations end ------------------------------------------------------------------------------

    def answered(self, job: Iteration, done: IterationResult, now: int) -> None:
        running_query(job.task.asked).figures.answered(job, done)
        self._lost(job, 1 - Fraction(done.keep), now)

    def failed(self, job: Iteration, reason: str, now: int) -> None:
        running_query(job.task.asked).figures.failed(reason, now)
        self._lost(job, Fraction(1), now)

    def _is_there(self, task: QueryTask) -> bool:
        """Whether the query is still admitted: after its last iteration another may have its name."""
        return self._admitted.get(task.name) is task.asked

    def _lost(self, job: Iteration, share: Fraction, now: int) -> None:
        """Records the share of an iteration's window that was not read."""
        pool, load = job.task.pool.name, job.task.load
        rescheduling = self._reschedulings.get(pool)
        if rescheduling is not None and rescheduling.is_due(
            load.weight * load.selectivity * load.tuples * share
        ):
            self._measure(pool, now)

    # -- status --------------------------------------------------------------------------------------------

    def warn(self) -> None:
        """Logs queries that a table holds back."""
        self._held_back.look(queries_of(self._kernel))

    def refusals(self) -> list[str]:
        """A sentence with the reason for each refused query."""
        return [f"query {name} is refused: {refused.reason}" for name, (_, refused) in self._refused.items()]

    def statuses(self) -> tuple[QueryStatus, ...]:
        """The statuses of queries that run, come or leave, and of refused ones."""
        tasks = queries_of(self._kernel)
        at_work = {task.name: task for task in tasks}
        found = [self._status(name, at_work.get(name)) for name in self._admitted]
        found += [
            QueryStatus(task.name, "LEAVING", task.asked.pool, task.stride_us, task.deadline_us)
            for task in tasks
            if task.leaving is not None and task.name not in self._admitted
        ]
        found += [
            QueryStatus(
                name,
                "REFUSED",
                query.pool,
                query.stride_us,
                query.deadline_us,
                message=refused.reason,
                period_least_us=refused.period_least_us,
            )
            for name, (query, refused) in self._refused.items()
        ]
        return tuple(found)

    def _status(self, name: str, task: QueryTask | None) -> QueryStatus:
        admitted = self._admitted[name]
        query, figures = admitted.prepared.query, admitted.figures
        is_there = task is not None and task.asked is admitted
        state: QueryState = "RUNNING" if is_there else "COMING"
        held = task.held_back() if task is not None and is_there else None
        return QueryStatus(
            name,
            state,
            query.pool,
            query.stride_us,
            query.deadline_us,
            figures.budget_us,
            figures.iterations,
            figures.missed,
            figures.missed_because,
            figures.keep,
            figures.keep_sum / figures.iterations if figures.iterations else None,
            figures.finished_us,
            figures.message,
            looks=figures.looks,
            held_back_by=None if held is None else held.table,
            behind_us=None if held is None or held.freshness <= 0 else held.behind_us,
        )
