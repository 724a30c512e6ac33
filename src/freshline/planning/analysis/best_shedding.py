"""The least weighted error at which continuous queries meet their deadlines, as a mixed-integer program.

Each query has the share u of what it can give up. Each level that overruns has a binary y for each of its
points, one of which must hold: Σ n_j·(E_j − A_j)·u_j ≥ Φ·y. It is the reference for the quick rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Final, NamedTuple

import highspy
import numpy as np

from freshline.planning.analysis.demand import loss_us
from freshline.planning.analysis.demand_of_many import QUERIES_LOOKED_AT_ALONE, steps_of
from freshline.planning.analysis.levels import QueryLoad, blocking_us, by_priority, is_schedulable
from freshline.planning.analysis.scheduling_points import bini_buttazzo, decisive_levels
from freshline.planning.analysis.shedding import shed, weighted_error

GAP_MOST: Final = 1e-4
_OPTIONS: Final = {
    "output_flag": False,
    "threads": 1,
    "mip_rel_gap": GAP_MOST,
    "primal_feasibility_tolerance": 1e-9,
    "mip_feasibility_tolerance": 1e-9,
    "mip_max_nodes": 50_000,
    "time_limit": 60.0,
}
# Rounds that cut one more microsecond from each cut query, if the solver's floats were slightly too small.
_REPAIRS_MAX: Final = 16


class _Point(NamedTuple):
    overrun_us: int
    releases: list[int]  # by query, from the highest priority down to the level


def best(loads: Sequence[QueryLoad]) -> list[int] | None:
    """The costs E' of least error, within 1e-4 of the optimum; None if not even the least costs fit.

    It is never worse than `least-error`, which is the answer if the solver takes too long.
    """
    of_rule = shed(loads, "least-error")
    if of_rule is None or all(cost == load.cost_us for cost, load in zip(of_rule, loads, strict=True)):
        return of_rule
    order = by_priority(loads)
    ordered = [loads[place] for place in order]
    shares = _solve(ordered, list(_levels(ordered)))
    if shares is None:
        return of_rule
    room = [load.cost_us - load.least_us for load in ordered]
    cuts = [min(most, ceil(most * share - 1e-6)) for most, share in zip(room, shares, strict=True)]
    for _ in range(_REPAIRS_MAX):
        costs_us = [load.cost_us for load in loads]
        for place, cut in zip(order, cuts, strict=True):
            costs_us[place] -= cut
        if is_schedulable(loads, costs_us):
            return min(costs_us, of_rule, key=lambda costs: weighted_error(loads, costs))
        cuts = [min(most, cut + 1) if cut else 0 for most, cut in zip(room, cuts, strict=True)]
    return of_rule


def _levels(ordered: Sequence[QueryLoad]) -> Iterator[list[_Point]]:
    """The points at which each level that overruns can be made to hold."""
    costs = [load.cost_us for load in ordered]
    room = [load.cost_us - load.least_us for load in ordered]
    for blocking, instants, releases in _looked_at(ordered):
        overruns = [
            blocking + sum(map(int.__mul__, of_each, costs)) - instant
            for instant, of_each in zip(instants, releases, strict=True)
        ]
        if min(overruns) > 0:
            yield [
                _Point(overrun, of_each)
                for overrun, of_each in zip(overruns, releases, strict=True)
                if sum(map(int.__mul__, of_each, room)) >= overrun
            ]


def _looked_at(ordered: Sequence[QueryLoad]) -> Iterator[tuple[int, list[int], list[list[int]]]]:
    """The blocking of each level that matters, its points, and the releases there."""
    periods = tuple([load.period_us for load in ordered])
    deadlines = tuple([load.deadline_us for load in ordered])
    blocking = blocking_us(ordered)
    if len(ordered) > QUERIES_LOOKED_AT_ALONE:
        for step in steps_of(periods, deadlines):
            yield blocking[step.first], step.instants.tolist(), step.releases.tolist()
        return
    for level in sorted(decisive_levels(deadlines, blocking)):
        instants = bini_buttazzo(level, periods, deadlines)
        releases = [[-(-instant // period) for period in periods[: level + 1]] for instant in instants]
        yield blocking[level], instants, releases


def _solve(ordered: Sequence[QueryLoad], levels: Sequence[Sequence[_Point]]) -> list[float] | None:
    """The share of its room that each query gives up; None if a level has no point, or without a solution."""
    if not all(levels):
        return None
    queries = len(ordered)
    room = [load.cost_us - load.least_us for load in ordered]
    losses = [loss_us(load) * most if most else 0.0 for load, most in zip(ordered, room, strict=True)]
    largest = max(losses) or 1.0
    binaries = sum(map(len, levels))
    program = highspy.Highs()
    for option, value in _OPTIONS.items():
        program.setOptionValue(option, value)
    columns = queries + binaries
    program.addVars(columns, np.zeros(columns), np.ones(columns))
    program.changeColsCost(queries, np.arange(queries), np.array(losses) / largest)
    whole = np.arange(queries, columns, dtype=np.int32)
    program.changeColsIntegrality(
        binaries, whole, np.full(binaries, highspy.HighsVarType.kInteger.value, np.uint8)
    )
    column = queries
    for points in levels:
        one_of = list(range(column, column + len(points)))
        program.addRow(1.0, highspy.kHighsInf, len(points), one_of, [1.0] * len(points))
        for number, point in zip(one_of, points, strict=True):
            cut = [place for place, _ in enumerate(point.releases) if room[place]]
            freed = [point.releases[place] * room[place] / point.overrun_us for place in cut]
            program.addRow(0.0, highspy.kHighsInf, len(cut) + 1, [*cut, number], [*freed, -1.0])
        column += len(points)
    program.run()
    if program.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return [min(1.0, max(0.0, share)) for share in list(program.getSolution().col_value)[:queries]]
