"""The nodes and sub-deadlines of steps, as a run keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class StepPlacement:
    """A placement of all steps of a warehouse, in microseconds."""

    nodes: Mapping[str, str]  # by step
    sub_deadlines_us: Mapping[str, int]  # D, by step
    costs_us: Mapping[str, int]  # by step: worst case, on its node
    tasks: tuple[tuple[str, ...], ...]  # steps that run one after another for the same input (5.3)
    limits_us: Mapping[str, int] = field(default_factory=dict)  # by node: the longest job of several steps
    stretched: Mapping[str, float] = field(default_factory=dict)  # by output: the factor on its deadline
    unproven: Mapping[str, str] = field(default_factory=dict)  # by output that may be late: why
    assumed: tuple[str, ...] = ()  # the steps of unknown cost, with a second assumed
    definitions: str = ""  # the digest of the definitions that it was made from

    @property
    def stretch(self) -> float:
        """The largest factor on a deadline; 1 if all are kept."""
        return max(self.stretched.values(), default=1.0)

    @property
    def shortcomings(self) -> list[str]:
        """Warnings for a run with this placement: sentences without a full stop."""
        found = []
        if self.stretched:
            names = ", ".join(self.stretched)
            # Another placement may keep them by now, since costs have become known or steps have stayed.
            found.append(
                f"deadlines are stretched {self.stretch:.4g} times ({names}) in the placement of this "
                "storage: `freshline plan` says what `freshline place --apply` would change"
            )
        found += [f"output {name} may be late: {why}" for name, why in self.unproven.items()]
        if self.assumed:
            found.append(
                f"a second each is assumed for {', '.join(self.assumed)}, as no cost is known: "
                "`freshline place --apply` uses the costs of past runs"
            )
        return found

    def record(self) -> dict[str, Any]:
        return {
            "nodes": dict(self.nodes),
            "sub_deadlines_us": dict(self.sub_deadlines_us),
            "costs_us": dict(self.costs_us),
            "tasks": [list(task) for task in self.tasks],
            "limits_us": dict(self.limits_us),
            "stretched": dict(self.stretched),
            "unproven": dict(self.unproven),
            "assumed": list(self.assumed),
            "definitions": self.definitions,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        return cls(
            record["nodes"],
            record["sub_deadlines_us"],
            record["costs_us"],
            tuple(tuple(task) for task in record["tasks"]),
            record["limits_us"],
            record.get("stretched", {}),
            record["unproven"],
            tuple(record["assumed"]),
            record["definitions"],
        )
