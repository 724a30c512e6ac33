"""Events about costs that become known in a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.recovery.aus import admission
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.recovery.outages import RememberingRelease
from freshline.kernel.recovery.terms import RecoveryTerms
from freshline.kernel.tables.task import tables_of

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


class LearnedCost(NamedTuple):
    """What is known of a table's costs from now on."""

    worst_case_us: int  # of an update
    startup_us: int  # the start-up part of it
    provisioned_us: int | None  # the cost that its share is made for, if its policy has shares
    terms: RecoveryTerms | None  # of its recovery; None if it has none, or had them before

    def record(self) -> Record:
        record = self._asdict()
        if self.terms is not None:
            record["terms"] = {**asdict(self.terms), "weight": str(self.terms.weight)}
        return record

    @classmethod
    def from_record(cls, record: Record) -> Self:
        terms = record["terms"]
        if terms is not None:
            exact = {
                "weight": Fraction(terms["weight"]),
                "source_bounds_us": tuple(terms["source_bounds_us"]),
            }
            terms = RecoveryTerms(**{**terms, **exact})
        return cls(**{**record, "terms": terms})


@dataclass(slots=True, eq=False, repr=False)
class CostsLearned(Event):
    """Costs have become known, and maybe bounds."""

    word = "learned"
    priority = 2
    tables: Mapping[str, LearnedCost]
    batch_limits_us: Mapping[str, int] = field(default_factory=dict)  # by pool, if changed

    def take(self, kernel: Kernel, now: int) -> None:
        succeeding: list[AdaptiveRelease] = []
        shares: dict[TrackPool, dict[str, int]] = {}
        for task in tables_of(kernel):
            known = self.tables.get(task.name)
            if known is None:
                continue
            task.worst_case_us, task.startup_us = known.worst_case_us, known.startup_us
            if known.provisioned_us is not None:
                shares.setdefault(task.pool, {})[task.name] = known.provisioned_us
            if known.terms is not None:
                assert isinstance(task.rule, RememberingRelease), f"{task!r} has no recovery mode"
                task.rule = rule = AdaptiveRelease.succeeding(task.rule, known.terms)
                succeeding.append(rule)
        for pool, costs_us in shares.items():
            order = admission(pool)
            assert order is not None, f"pool {pool.name} gives no shares"
            order.learned(costs_us)
            pool.touch()
        for pool in kernel.pools:
            pool.order.batch_limit_us = self.batch_limits_us.get(pool.name, pool.order.batch_limit_us)
        # After all rules are replaced: a late table affects the tables that read it.
        for rule in succeeding:
            rule.take_over(now)

    def record(self) -> Record:
        record: Record = {self.word: {table: cost.record() for table, cost in self.tables.items()}}
        if self.batch_limits_us:
            record["batch_limits_us"] = dict(self.batch_limits_us)
        return record

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        tables = {table: LearnedCost.from_record(cost) for table, cost in record[cls.word].items()}
        return cls(tables, record.get("batch_limits_us", {}))

    def __repr__(self) -> str:
        return f"Learned({', '.join(self.tables)})"


EVENTS: Final[tuple[type[Event], ...]] = (CostsLearned,)
