"""What a kernel knows of a query, and the task made from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from freshline.kernel.queries.release import EveryStride
from freshline.kernel.queries.task import QueryTask
from freshline.kernel.tables.remote_table import source_named
from freshline.planning.analysis.levels import QueryLoad

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.core.pool import TrackPool


class QueryMeasure(NamedTuple):
    """What a query's windows hold, and what its answers cost."""

    tuples: Fraction | int  # w
    cost_us: int  # E = F(1)
    fixed_us: int  # a
    selectivity: Fraction
    part_us: int | None = None  # the longest part that cannot be paused, if other than planned

    def record(self) -> list[Any]:
        known = [str(self.tuples), self.cost_us, self.fixed_us, str(self.selectivity)]
        return known if self.part_us is None else [*known, self.part_us]

    @classmethod
    def from_record(cls, record: Sequence[Any]) -> Self:
        tuples, cost_us, fixed_us, selectivity, *part_us = record
        return cls(Fraction(tuples), cost_us, fixed_us, Fraction(selectivity), *part_us)

    def keep_in(self, time_us: int) -> Fraction:
        """The share of the window that can be read in that time."""
        if time_us >= self.cost_us:
            return Fraction(1)
        if time_us <= self.fixed_us:
            return Fraction(0)  # all of the cost may be fixed
        return Fraction(time_us - self.fixed_us, self.cost_us - self.fixed_us)

    def cost_of(self, keep: Fraction) -> int:
        """F(keep) in whole microseconds, at least 1."""
        more = (self.cost_us - self.fixed_us) * keep
        return max(1, self.fixed_us - -more.numerator // more.denominator)


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """What a kernel needs to know of a query."""

    name: str
    pool: str  # the kernel's pool, of one track
    window_us: int
    stride_us: int
    deadline_us: int
    part_us: int
    measure: QueryMeasure  # as far as it is known
    weight: Fraction = Fraction(1)
    keep_least: Fraction = Fraction(0)
    tables: tuple[str, ...] = ()  # that it reads

    def load(self, measure: QueryMeasure) -> QueryLoad:
        """The query as the analysis sees it."""
        return QueryLoad(
            self.name,
            self.stride_us,
            self.deadline_us,
            measure.cost_us,
            measure.fixed_us,
            measure.cost_of(self.keep_least),
            self.part_us if measure.part_us is None else measure.part_us,
            self.weight,
            measure.selectivity,
            measure.tuples,
        )

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "pool": self.pool,
            "window_us": self.window_us,
            "stride_us": self.stride_us,
            "deadline_us": self.deadline_us,
            "part_us": self.part_us,
            "measure": self.measure.record(),
            "weight": str(self.weight),
            "keep_least": str(self.keep_least),
            "tables": list(self.tables),
        }

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> Self:
        read = {
            "measure": QueryMeasure.from_record(record["measure"]),
            "weight": Fraction(record["weight"]),
            "keep_least": Fraction(record["keep_least"]),
            "tables": tuple(record["tables"]),
        }
        return cls(**{**record, **read})


def join(kernel: Kernel, asked: QuerySpec) -> QueryTask:
    """Adds a task for the query, after all others, to its pool."""
    tables = [source_named(kernel, name) for name in asked.tables]
    place = max((task.place for task in kernel.tasks), default=-1) + 1
    task = QueryTask(place, asked, tables)
    task.rule = EveryStride(task, kernel.timers)
    kernel.add(task)
    pool_of(kernel, asked).join(task)
    return task


def pool_of(kernel: Kernel, asked: QuerySpec) -> TrackPool:
    """The pool that answers the query."""
    return {pool.name: pool for pool in kernel.pools}[asked.pool]
