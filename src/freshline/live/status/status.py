"""What a running warehouse tells the outside: records, and the file that another terminal reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

from freshline.base.atomic_write import replace_text
from freshline.base.duration import seconds
from freshline.base.errors import InputError
from freshline.base.instants import written
from freshline.definitions.language.policies import PolicyName
from freshline.kernel.tables.state import TableState, exceeds
from freshline.live.status.step_status import OutputStatus, PlacementStatus, StepStatus


@dataclass(frozen=True)
class TableStatus:
    """A table at one instant. Instants are µs since the Unix epoch."""

    name: str
    state: TableState
    freshness_us: int | None  # None until something is loaded
    trailing_edge_us: int | None
    staleness_bound_us: int | None
    target_lag_us: int | None
    period_us: int
    backlog: int  # files that arrived and are not loaded
    loaded_rows: int  # since the runner started, as late rows and jobs
    late_rows: int
    jobs: int  # finished
    message: str | None  # what went wrong last
    staleness_max_us: int | None
    lag_max_us: int | None
    running_on: int | None  # the track
    expected: bool = False  # its bound holds in expectation only
    recovery_due_us: int | None = None  # by when a late table is to have caught up
    recovery_estimated: bool = False  # nothing is promised yet: others recover first
    came_us: int | None = None  # when the first of what it is to load came; None: nothing, in this run
    shed_rows: int = 0  # since the runner started: records that gave way to others of their window
    discarded_files: int = 0  # since then: files that changed too little to be loaded

    @property
    def lag_us(self) -> int | None:
        """How far the table is behind what could be loaded; None before the first load."""
        if self.freshness_us is None or self.trailing_edge_us is None:
            return None
        return max(0, self.trailing_edge_us - self.freshness_us)

    def staleness_us(self, now_us: int) -> int | None:
        """How old the newest record is; None before the first load."""
        # A record may be dated a little ahead of its arrival: the table is not fresher than now.
        return None if self.freshness_us is None else max(0, now_us - self.freshness_us)

    def unloaded_us(self, now_us: int) -> int | None:
        """How long there has been something to load for a table that has never loaded anything."""
        if self.freshness_us is not None or self.came_us is None:
            return None
        return max(0, now_us - self.came_us)

    def misses_target(self, now_us: int) -> bool:
        """Whether the table is staler than its target allows, or has been without a row for longer."""
        age_us = self.unloaded_us(now_us) if self.freshness_us is None else self.staleness_us(now_us)
        return exceeds(age_us, self.target_lag_us)

    def record(self, as_of_us: int) -> dict[str, Any]:
        """The table at that instant as people's programs read it."""
        due_us = self.recovery_due_us
        return {
            "name": self.name,
            "state": self.state,
            "freshness": written(self.freshness_us),
            "lag": seconds(self.lag_us),
            "staleness": seconds(self.staleness_us(as_of_us)),
            "staleness_bound": seconds(self.staleness_bound_us),
            "target_lag": seconds(self.target_lag_us),
            "backlog": self.backlog,
            "unloaded": seconds(self.unloaded_us(as_of_us)),
            "recovery_due": None if due_us is None else seconds(due_us - as_of_us),
            "recovery_estimated": self.recovery_estimated,
            "rows_shed": self.shed_rows,
            "files_discarded": self.discarded_files,
        }


QueryState = Literal["RUNNING", "COMING", "LEAVING", "REFUSED", "ENDED"]


@dataclass(frozen=True)
class QueryStatus:
    """A continuous query at one instant: one that runs, is to join or to go, was refused, or has ended
    together with the run."""

    name: str
    state: QueryState
    pool: str
    stride_us: int | None = None
    deadline_us: int | None = None
    budget_us: int | None = None  # of its last iteration; None: as long as it takes
    iterations: int = 0  # that are over, since it came
    misses: int = 0
    missed_because: str | None = None
    keep: float | None = None  # of its last answer
    keep_mean: float | None = None
    finished_us: int | None = None  # when that was there
    message: str | None = None  # what went wrong last
    period_least_us: int | None = None  # of one that was refused
    looks: int = 0  # iterations that read beyond their budget, to learn what that costs now

    def record(self) -> dict[str, Any]:
        """The query as people's programs read it."""
        return {
            "name": self.name,
            "state": self.state,
            "pool": self.pool,
            "stride": seconds(self.stride_us),
            "deadline": seconds(self.deadline_us),
            "budget": seconds(self.budget_us),
            "iterations": self.iterations,
            "misses": self.misses,
            "missed_because": self.missed_because,
            "looks": self.looks,
            "keep": self.keep,
            "keep_mean": self.keep_mean,
            "finished": seconds(self.finished_us),
            "last_error": self.message,
            "period_least": seconds(self.period_least_us),
        }


@dataclass(frozen=True)
class ClassStatus:
    """A service class at one instant: how it fared in its last period, and since the run began."""

    name: str
    pool: str
    error: float  # that its answers may have on average
    ate: float | None = None  # that they had; None: nobody was answered
    admitted: float | None = None  # the share of its requests; None: nobody asked
    quota: float | None = None  # the error that requests get parts for, where its policy has quotas
    waiting: int = 0  # requests
    answered: int = 0  # since the run began, as what follows
    error_mean: float | None = None
    rejected: int = 0
    unanswered: int = 0  # by their deadline
    withdrawn: int = 0  # by who asked
    state: str = "IDLE"  # or KEPT, SETTLING, BROKEN: whether it gets the error that it was promised

    def record(self) -> dict[str, Any]:
        """The class as people's programs read it."""
        return {"class": self.name, **{key: value for key, value in vars(self).items() if key != "name"}}


@dataclass(frozen=True)
class TrackStatus:
    """A track at one instant, and the table whose job it runs."""

    number: int
    pool: str
    table: str | None
    since_us: int | None


@dataclass(frozen=True)
class PoolStatus:
    """A pool, and the policy that it behaves as: another one, where its own is of no use without a bound."""

    name: str
    policy: PolicyName
    behaves_as: PolicyName


@dataclass(frozen=True)
class Progress:
    """What a start is at, and how far it is where that can be counted."""

    doing: str
    done: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{self.doing}, {self.done} of {self.of}" if self.of else self.doing


@dataclass(frozen=True)
class WarehouseStatus:
    """A running warehouse at one instant, and who runs it."""

    name: str
    run_id: str
    host: str
    pid: int
    at_us: int
    started_us: int
    tables: tuple[TableStatus, ...]
    tracks: tuple[TrackStatus, ...]
    broken_assumptions: tuple[str, ...]  # the latest, oldest first
    quarantined: int  # files
    recoveries: tuple[str, ...] = ()  # those that go on, and the latest that are over, the last first
    pools: tuple[PoolStatus, ...] = ()
    queries: tuple[QueryStatus, ...] = ()
    classes: tuple[ClassStatus, ...] = ()
    starting: Progress | None = None  # what is left to do of its start
    node: str | None = None  # whose run it is, in a warehouse with nodes; None where it is of all of them
    steps: tuple[StepStatus, ...] = ()
    outputs: tuple[OutputStatus, ...] = ()
    placement: PlacementStatus | None = None  # of steps; None where there are none

    @property
    def is_opening(self) -> bool:
        """Whether nothing can be loaded yet, and nothing is known of the tables."""
        return self.starting is not None and not self.tables and not self.steps

    def of_the_past(self) -> Self:
        """The same, of a runner that has gone: nobody answers its queries."""
        ended = tuple(
            query if query.state == "REFUSED" else replace(query, state="ENDED") for query in self.queries
        )
        return replace(self, queries=ended)

    def record(self, as_of_us: int) -> dict[str, Any]:
        """What `freshline status --json` prints, and the service answers."""
        return {
            "starting": None if self.starting is None else vars(self.starting),
            "pools": [vars(pool) for pool in self.pools],
            "tables": [table.record(as_of_us) for table in self.tables],
            "queries": [query.record() for query in self.queries],
            "classes": [each.record() for each in self.classes],
            "outputs": [output.record() for output in self.outputs],
            "steps": [step.record() for step in self.steps],
            "placement": None if self.placement is None else self.placement.record(),
        }

    def to_json(self) -> str:
        # `vars` because `dataclasses.asdict` copies every value, which is most of the time it takes.
        record = vars(self) | {
            "tables": [vars(table) for table in self.tables],
            "tracks": [vars(track) for track in self.tracks],
            "pools": [vars(pool) for pool in self.pools],
            "starting": None if self.starting is None else vars(self.starting),
            "queries": [vars(query) for query in self.queries],
            "classes": [vars(each) for each in self.classes],
            "steps": [vars(step) for step in self.steps],
            "outputs": [vars(output) for output in self.outputs],
            "placement": None if self.placement is None else vars(self.placement),
        }
        return json.dumps(record)

    @classmethod
    def from_json(cls, text: str) -> Self:
        record: dict[str, Any] = json.loads(text)
        return cls(
            **record
            | {
                "tables": tuple(TableStatus(**table) for table in record["tables"]),
                "tracks": tuple(TrackStatus(**track) for track in record["tracks"]),
                "broken_assumptions": tuple(record["broken_assumptions"]),
                "recoveries": tuple(record["recoveries"]),
                "pools": tuple(PoolStatus(**pool) for pool in record["pools"]),
                "starting": Progress(**record["starting"]) if record["starting"] else None,
                "queries": tuple(QueryStatus(**query) for query in record["queries"]),
                "classes": tuple(ClassStatus(**each) for each in record["classes"]),
                "steps": tuple(StepStatus(**step) for step in record["steps"]),
                "outputs": tuple(OutputStatus(**output) for output in record["outputs"]),
                "placement": PlacementStatus.read(record["placement"]) if record["placement"] else None,
            }
        )

    def write(self, path: Path) -> None:
        """Replaces the one before."""
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, self.to_json())

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = f"there is no status at {path}: this warehouse has not run yet"
            raise InputError(what, "Start it with `freshline run`") from None
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", "Make the file readable") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"{path} is not a status that this version of Freshline can read"
            raise InputError(
                what, "Run the same version as the runner, or restart `freshline run`"
            ) from error
