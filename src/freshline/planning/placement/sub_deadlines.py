"""The best sub-deadlines for a placement: each output separately, since (6) gives every unit a least one.

With l_o the left side of (6), every d_{s,o} ≥ l_o, and on every path to s Σ d_{s,o} ≤ d_s (5). More than
max(l_o, d'_{s,o}) gains nothing. So the decision is which units give up how much of that if a path is too
long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import highspy
import numpy as np

from freshline.planning.placement.programme import TOLERANCE, Goal, Programme

SubDeadlines = dict[int, float]  # by unit, of one output


def left_sides(programme: Programme, nodes: Sequence[int]) -> dict[int, float]:
    """By unit that an output needs, the left side of (6): blocking and the units up to it on its node."""
    done = list(programme.blocking)
    found = {}
    for unit in programme.order:
        node = nodes[unit]
        done[node] += programme.cost[unit] / programme.speed[node]
        found[unit] = done[node]
    return found


def longest_path(goal: Goal, lengths: Mapping[int, float]) -> float:
    """The length of the longest path to the output, with these lengths of units."""
    return latest(goal, lengths)[goal.last]


def latest(goal: Goal, lengths: Mapping[int, float]) -> dict[int, float]:
    """By unit: its end, if each begins at the end of the last unit it reads."""
    ends: dict[int, float] = {}
    for unit, before in goal.reads.items():
        ends[unit] = max([ends[each] for each in before], default=0.0) + lengths[unit]
    return ends


def stretch(programme: Programme, least: Mapping[int, float]) -> float:
    """The least factor on all deadlines with which this placement holds."""
    return max(longest_path(goal, least) / float(goal.deadline) for goal in programme.goals)


class SubDeadlineRule:
    """The sub-deadlines of least Σ |d_s/c'_s − d_{s,o}/c_o|, by output; results are cached."""

    def __init__(self, programme: Programme, factor: float = 1.0) -> None:
        """All deadlines are `factor` times as long."""
        self.programme = programme
        self.deadline = [float(goal.deadline) * factor for goal in programme.goals]
        self.ideal = [
            {unit: programme.cost[unit] * ratio * factor for unit in goal.units}
            for goal, ratio in zip(programme.goals, programme.ratio, strict=True)
        ]
        self._models: dict[int, _Shortening] = {}
        self._known: list[dict[tuple[float, ...], float]] = [{} for _ in programme.goals]

    def objective(self, least: Mapping[int, float]) -> float:
        """The sum over all outputs; infinite if one cannot be in time."""
        return sum(self.cost(number, least) for number in range(len(self.deadline)))

    def cost(self, number: int, least: Mapping[int, float]) -> float:
        """One output's part of the objective; infinite if it cannot be in time."""
        ideal = self.ideal[number]
        if all(least[unit] <= share for unit, share in ideal.items()):
            return 0.0
        key = tuple([least[unit] for unit in ideal])
        known = self._known[number]
        if key not in known:
            found = self.of(number, least)
            known[key] = inf if found is None else self._distance(number, found)
        return known[key]

    def of(self, number: int, least: Mapping[int, float]) -> SubDeadlines | None:
        """One output's sub-deadlines; None if not even the least ones are in time."""
        goal, deadline, ideal = self.programme.goals[number], self.deadline[number], self.ideal[number]
        wanted = {unit: max(share, least[unit]) for unit, share in ideal.items()}
        if longest_path(goal, wanted) <= deadline * (1 + 1e-12):
            return wanted
        if longest_path(goal, least) > deadline * (1 + TOLERANCE):
            return None
        if goal.is_chain:
            return self._shortened_chain(wanted, least, deadline)
        if number not in self._models:
            self._models[number] = _Shortening(self.programme, goal, deadline)
        return self._models[number].solve(wanted, least)

    def _distance(self, number: int, found: SubDeadlines) -> float:
        cost, ideal = self.programme.cost, self.ideal[number]
        return sum(abs(ideal[unit] - length) / cost[unit] for unit, length in found.items())

    def _shortened_chain(
        self, wanted: SubDeadlines, least: Mapping[int, float], deadline: float
    ) -> SubDeadlines:
        """The longest units lose least by a second, and give first."""
        found = dict(wanted)
        over = sum(found.values()) - deadline
        for unit in sorted(found, key=lambda unit: -self.programme.cost[unit]):
            given = min(over, found[unit] - least[unit])
            if given > 0:
                found[unit] -= given
                over -= given
        return found


class _Shortening:
    """Which unit gives up how much, as a linear programme: ends e_o ≥ e_o' + wanted_o − given_o."""

    def __init__(self, programme: Programme, goal: Goal, deadline: float) -> None:
        self._goal = goal
        self._units = goal.units
        self._deadline = deadline
        count = len(self._units)
        costs = np.array([programme.cost[unit] for unit in self._units])
        place = {unit: number for number, unit in enumerate(self._units)}
        self._model = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1)):
            self._model.setOptionValue(option, value)
        # First what each unit gives, then when it ends; both as shares of the deadline.
        self._model.addVars(2 * count, np.zeros(2 * count), np.ones(2 * count))
        self._model.changeColsCost(count, np.arange(count), deadline / costs)
        self._rows: list[int] = []
        for number, unit in enumerate(self._units):
            for before in goal.reads[unit] or (None,):
                columns, values = [number, count + number], [1.0, 1.0]
                if before is not None:
                    columns, values = [*columns, count + place[before]], [*values, -1.0]
                self._model.addRow(0.0, highspy.kHighsInf, len(columns), columns, values)
                self._rows.append(number)

    def solve(self, wanted: SubDeadlines, least: Mapping[int, float]) -> SubDeadlines:
        count = len(self._units)
        room = np.array([max(0.0, wanted[unit] - least[unit]) for unit in self._units]) / self._deadline
        asked = np.array([wanted[unit] for unit in self._units]) / self._deadline
        self._model.changeColsBounds(count, np.arange(count), np.zeros(count), room)
        rows = len(self._rows)
        self._model.changeRowsBounds(
            rows, np.arange(rows), asked[self._rows], np.full(rows, highspy.kHighsInf)
        )
        self._model.run()
        if self._model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return {unit: least[unit] for unit in self._units}  # at the limit, within the tolerance
        given = list(self._model.getSolution().col_value)[:count]
        return {
            unit: wanted[unit] - self._deadline * min(float(most), max(0.0, share))
            for unit, share, most in zip(self._units, given, room, strict=True)
        }
