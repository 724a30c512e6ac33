"""The kinds of work of a simulated run. A new kind is a file beside this one and one line here."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from freshline.simulation.answers import QueryResult, SimulatedAnswers
from freshline.simulation.classes import SimulatedClasses
from freshline.simulation.kind import KindResult, SimulatedKind
from freshline.simulation.steps import OutputResult, SimulatedSteps, StepResult
from freshline.simulation.tables import SimulatedTables, TableResult

R = TypeVar("R")

KINDS: Final[list[type[SimulatedKind[Any]]]] = [
    SimulatedTables,
    SimulatedAnswers,
    SimulatedClasses,
    SimulatedSteps,
]


class KindResults:
    """The results of a run by kind. The properties are shortcuts."""

    __slots__ = ()

    seen: tuple[KindResult, ...]

    def of(self, kind: type[R]) -> tuple[R, ...]:
        """The results of one class."""
        return tuple(result for result in self.seen if isinstance(result, kind))

    @property
    def tables(self) -> tuple[TableResult, ...]:
        return self.of(TableResult)

    @property
    def queries(self) -> tuple[QueryResult, ...]:
        return self.of(QueryResult)

    @property
    def outputs(self) -> tuple[OutputResult, ...]:
        return self.of(OutputResult)

    @property
    def steps(self) -> tuple[StepResult, ...]:
        return self.of(StepResult)
