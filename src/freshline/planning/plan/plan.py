"""A plan: for each pool and table, whether the targets hold, before anything runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from freshline.definitions.language.policies import POLICIES, PolicyName
from freshline.definitions.sections.pools import Provisioning
from freshline.definitions.warehouse import Warehouse
from freshline.planning.analysis.admission import QueryRefusal
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.analysis.recovery_periods import recovery_time
from freshline.planning.costs.cores import SparkCores
from freshline.planning.plan.placement_change import PlacementChange
from freshline.planning.plan.slow_tables import SlowTable
from freshline.planning.plan.step_placement import StepPlacement


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """Tables of a pool, and the tracks that serve them first or exclusively."""

    tables: tuple[str, ...]
    tracks: int
    batch_limit_us: int | None = None  # as a pool's, if its tracks are exclusive


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A pool: its worst-case utilisation, and the division of its tracks."""

    name: str
    tracks: int
    policy: PolicyName
    utilization: float
    fits: bool  # U <= tracks, decided exactly
    tables: tuple[str, ...]  # by name, in the order of definition
    clusters: tuple[ClusterPlan, ...] | None  # if the policy divides its tracks
    # The least number of tracks for which all of its tables hold, and all downstream that it could make
    # hold, with other pools as they are; None if it cannot make all of its own hold.
    tracks_least: int | None
    provisioning: Provisioning = "worst"  # with `average` the bounds are only expected
    blocking_us: int = 0  # how long a batch may block others, as every bound counts it
    # The longest blocking with which every target still holds that its tracks can prove; None if nothing
    # limits it, or nothing is proven.
    blocking_most_us: int | None = None
    # How long a batch may be (docs/batches.md), if it is no longer than its table's period. None: only that
    # counts; 0: no batches. With isolated clusters, the least of theirs.
    batch_limit_us: int | None = 0
    queries: tuple[str, ...] = ()  # by name, in the order of definition, if it is a pool of queries
    classes: tuple[str, ...] = ()  # by name, the most important first
    part_us: int = 0  # the longest part of their requests, which may block updates on each track

    def behaves_as(self, tables: Sequence[TablePlan]) -> PolicyName:
        """The policy that it effectively has, given the plans of all tables.

        Without a bound there is no recovery mode, and an overloaded pool has no clusters: that is `edf`.
        """
        bounded = any(table.staleness_bound_us is not None for table in tables if table.pool == self.name)
        known = POLICIES[self.policy]
        if self.tables and ((known.adaptive and not bounded) or (known.clusters and self.clusters is None)):
            return "edf"
        return self.policy


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table: its worst-case cost, and how stale it can become."""

    name: str
    pool: str
    period_us: int
    cost_us: int
    response_bound_us: int | None  # Θ; None if no bound is proven
    staleness_bound_us: int | None  # A(V)
    target_lag_us: int | None
    holds: bool
    # The number of runs that its cost was learned from; 0 if it is declared.
    learned_from_runs: int = 0
    # Of a table with recovery (adaptive policies): the cost of its share, and p^[r].
    provisioned_us: int | None = None
    recovery_period_us: int | None = None
    expected: bool = False  # whether the bounds are only expected

    def recovery_time_us(self, outage_us: int, jitter_us: int = 0) -> int | None:
        """How long the table is late at most after an outage of that length; None if that has no bound."""
        if self.recovery_period_us is None or self.response_bound_us is None:
            return None
        return recovery_time(
            self.response_bound_us, self.period_us, self.recovery_period_us, outage_us, jitter_us
        )


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query: the cost of an answer, and what its pool can promise."""

    pool: str
    load: QueryLoad
    track: int | None  # of its pool, from 0; None if it is refused
    budget_us: int | None  # the time for an answer; None if nothing is shed
    keep: Fraction | None  # the share of its window that it reads; None if it is refused
    response_bound_us: int | None  # None if unknown: it may be late by more than a stride
    refusal: QueryRefusal | None = None
    learned_from_answers: int = 0  # that its cost was learned from; 0: declared, or by its operators
    held_back: SlowTable | None = None

    @property
    def name(self) -> str:
        return self.load.name

    @property
    def holds(self) -> bool:
        """Whether every answer is there by its deadline."""
        return self.response_bound_us is not None and self.response_bound_us <= self.load.deadline_us


@dataclass(frozen=True, slots=True)
class OutputPlan:
    """An output, and whether it is always in time."""

    name: str
    deadline_us: int
    holds: bool
    node: str | None  # None if nothing could be placed
    sub_deadlines_us: Mapping[str, int]  # by step: D of all steps upstream
    slack_us: int | None  # the further blocking that its nodes tolerate; None if it does not hold
    reason: str | None = None  # why it does not hold
    # By feed: how old its oldest record is assumed to be at most when its file is found; empty if unplaced.
    ages_us: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SparkPlan:
    """A Spark with a known number of cores."""

    spark: SparkCores
    factor: Fraction  # the most that any of its costs is multiplied by; 1 if all are those of busy tracks
    wait_us: int  # the most that any of its costs grows by for tasks of others
    cores_least: int | None  # with which all that holds elsewhere holds, at these tracks


@dataclass(frozen=True, slots=True)
class WholePlan:
    """A table whose updates replace all its rows."""

    name: str
    because: tuple[tuple[str, str], ...]  # what keeps it from being appended to, and what would help
    rows: int  # that its newest update read; 0 if it has never run
    rows_most: int | None  # all that is proven holds up to here; None if its cost does not grow
    rows_a_second: Fraction | None  # of its sources, if the feeds declare it
    versions_kept: int  # how many replaced versions its history keeps on disk
    pool_helps: tuple[str, ...]  # the tables that would hold if it had a pool of its own

    @property
    def lasts_s(self) -> Fraction | None:
        """For how long its targets hold at the rate of its feeds; None if that is not known."""
        if self.rows_most is None or not self.rows_a_second:
            return None
        return max(Fraction(0), (self.rows_most - self.rows) / self.rows_a_second)


@dataclass(frozen=True, slots=True)
class Plan:
    """The verdict on a warehouse."""

    warehouse: Warehouse
    pools: tuple[PoolPlan, ...]
    tables: tuple[TablePlan, ...]  # in the order of definition
    advice: tuple[str, ...]
    queries: tuple[QueryPlan, ...] = ()  # in the order of definition
    placed: StepPlacement | None = None  # the nodes of steps; None without steps, or if unknown
    outputs: tuple[OutputPlan, ...] = ()  # in the order of definition
    # By step: how stale it can become, if that is proven.
    steps_us: Mapping[str, int] = field(default_factory=dict)
    declared: Warehouse | None = None  # before cores were counted in its costs
    sparks: tuple[SparkPlan, ...] = ()  # those with a known number of cores
    change: PlacementChange | None = None  # by a new placement, if the storage has one
    whole: tuple[WholePlan, ...] = ()  # tables that are computed whole

    @property
    def tables_by_name(self) -> dict[str, TablePlan]:
        return {table.name: table for table in self.tables}

    @property
    def expected(self) -> bool:
        """Whether some bounds are only expected."""
        return any(table.expected for table in self.tables)

    @property
    def holds(self) -> bool:
        planned: list[TablePlan | QueryPlan | OutputPlan] = [*self.tables, *self.queries, *self.outputs]
        return all(each.holds for each in planned)
