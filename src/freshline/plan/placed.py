"""Where steps run and by when each is to be done, as a run keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Placed:
    """A placement of all steps of a warehouse, in microseconds."""

    nodes: Mapping[str, str]  # by step
    sub_deadlines_us: Mapping[str, int]  # D, by step
    costs_us: Mapping[str, int]  # at worst, on its node, by step
    tasks: tuple[tuple[str, ...], ...]  # steps that are done one after the other for the same input (5.3)
    limits_us: Mapping[str, int] = field(default_factory=dict)  # by node: how long a job of several may be

    def record(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "nodes": dict(self.nodes),
            "sub_deadlines_us": dict(self.sub_deadlines_us),
            "costs_us": dict(self.costs_us),
            "tasks": [list(task) for task in self.tasks],
            "limits_us": dict(self.limits_us),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        return cls(
            record["nodes"],
            record["sub_deadlines_us"],
            record["costs_us"],
            tuple(tuple(task) for task in record["tasks"]),
            record["limits_us"],
        )
