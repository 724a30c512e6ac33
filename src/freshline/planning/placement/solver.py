"""A mixed-integer programme, built by columns and rows, and solved by HiGHS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

import highspy
import numpy as np

GAP_MOST: Final = 1e-4
_OPTIONS: Final = {
    "output_flag": False,
    "threads": 1,
    "random_seed": 0,
    "mip_rel_gap": GAP_MOST / 2,
    "mip_abs_gap": 1e-7,
    "primal_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
}
_LEAST_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class SolverResult:
    """The columns' values, if found; a lower bound; the time it took."""

    values: list[float] | None
    bound: float  # infinite if there is provably no solution
    seconds: float


class Solver:
    """Minimises the columns' costs."""

    def __init__(self) -> None:
        self._lower: list[float] = []
        self._upper: list[float] = []
        self._cost: list[float] = []
        self._binaries: list[int] = []
        self._rows: list[tuple[float, float, list[tuple[int, float]]]] = []

    def column(self, lower: float, upper: float, cost: float = 0.0, whole: bool = False) -> int:
        number = len(self._lower)
        self._lower.append(lower)
        self._upper.append(upper)
        self._cost.append(cost)
        if whole:
            self._binaries.append(number)
        return number

    def is_zero(self, column: int) -> bool:
        return self._upper[column] == 0.0

    def row(self, lower: float, upper: float, *entries: tuple[int, float]) -> None:
        """lower ≤ Σ value·column ≤ upper."""
        self._rows.append((lower, upper, list(entries)))

    def solve(
        self, start: Mapping[int, float] | None, limit_s: float, target: float | None = None
    ) -> SolverResult:
        """Solves from known values of some columns, if given; stops at a target."""
        solver = self.loaded()
        solver.setOptionValue("time_limit", max(_LEAST_S, limit_s))
        if target is not None:
            solver.setOptionValue("objective_target", target)
        if start:
            solver.setSolution(len(start), np.array(list(start), np.int32), np.array(list(start.values())))
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
            return SolverResult(None, inf, solver.getRunTime())
        info, values = solver.getInfo(), None
        if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
            values = list(solver.getSolution().col_value)
        bound = info.mip_dual_bound if self._binaries else info.objective_function_value
        return SolverResult(values, bound, solver.getRunTime())

    def loaded(self) -> highspy.Highs:
        """The programme loaded into HiGHS, not solved yet."""
        solver = highspy.Highs()
        for option, value in _OPTIONS.items():
            solver.setOptionValue(option, value)
        columns = len(self._lower)
        solver.addVars(columns, np.array(self._lower), np.array(self._upper))
        solver.changeColsCost(columns, np.arange(columns, dtype=np.int32), np.array(self._cost))
        whole = np.array(self._binaries, dtype=np.int32)
        kinds = np.full(len(whole), highspy.HighsVarType.kInteger.value, np.uint8)
        solver.changeColsIntegrality(len(whole), whole, kinds)
        entries = [entry for _, _, row in self._rows for entry in row]
        starts = np.cumsum([0, *(len(row) for _, _, row in self._rows)], dtype=np.int32)[:-1]
        solver.addRows(
            len(self._rows),
            np.array([lower for lower, _, _ in self._rows]),
            np.array([upper for _, upper, _ in self._rows]),
            len(entries),
            starts,
            np.array([column for column, _ in entries], dtype=np.int32),
            np.array([value for _, value in entries]),
        )
        return solver
