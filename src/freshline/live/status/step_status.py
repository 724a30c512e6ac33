"""What a running warehouse tells of its steps and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from freshline.base.duration import seconds
from freshline.base.instants import written
from freshline.planning.plan.step_placement import StepPlacement


@dataclass(frozen=True)
class PlacementStatus:
    """What the placement that nodes run by falls short of."""

    stretch: float  # of all deadlines; 1 where they are kept
    unproven: tuple[tuple[str, str], ...]  # the outputs that may be late, and why
    assumed: tuple[str, ...]  # steps of which no cost was known
    shortcomings: tuple[str, ...]  # all that as sentences

    @classmethod
    def of(cls, placed: StepPlacement) -> Self:
        unproven, said = tuple(placed.unproven.items()), tuple(placed.shortcomings)
        return cls(placed.stretch, unproven, placed.assumed, said)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        unproven = tuple((output, why) for output, why in record["unproven"])
        return cls(record["stretch"], unproven, tuple(record["assumed"]), tuple(record["shortcomings"]))

    def record(self) -> dict[str, Any]:
        """The placement as people's programs read it."""
        unproven = [{"output": output, "reason": why} for output, why in self.unproven]
        return {"stretch": self.stretch, "unproven": unproven, "assumed": list(self.assumed)}


@dataclass(frozen=True)
class StepStatus:
    """A step at one instant. What is counted is since its node's run began."""

    name: str
    node: str
    sub_deadline_us: int | None
    misses: int  # instances that were done after their own deadline
    backlog: int  # instances that are there and not done
    rows: int
    rows_late: int
    freshness_us: int | None
    message: str | None = None  # what went wrong last
    rows_shed: int = 0  # records that gave way to others of their window

    def record(self) -> dict[str, Any]:
        """The step as people's programs read it."""
        return {
            "name": self.name,
            "node": self.node,
            "sub_deadline": seconds(self.sub_deadline_us),
            "misses": self.misses,
            "backlog": self.backlog,
            "rows": self.rows,
            "rows_late": self.rows_late,
            "rows_shed": self.rows_shed,
            "freshness": written(self.freshness_us),
            "last_error": self.message,
        }


@dataclass(frozen=True)
class OutputStatus:
    """An output at one instant: how old its rows were when they were committed."""

    name: str
    node: str
    deadline_us: int
    rows: int
    misses: int  # rows older than the deadline, and records that came too late to reach it
    p50_us: int | None
    p95_us: int | None
    max_us: int | None

    def record(self) -> dict[str, Any]:
        """The output as people's programs read it."""
        return {
            "name": self.name,
            "node": self.node,
            "deadline": seconds(self.deadline_us),
            "rows": self.rows,
            "misses": self.misses,
            "latency": {
                "p50": seconds(self.p50_us),
                "p95": seconds(self.p95_us),
                "max": seconds(self.max_us),
            },
        }
