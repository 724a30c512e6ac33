"""One random overloaded set of continuous queries, shed by every rule and as the paper prints it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from freshline.planning.analysis.best_shedding import best
from freshline.planning.analysis.levels import QueryLoad, by_priority, holds, is_schedulable
from freshline.planning.analysis.shedding import Rule, shed, weighted_error
from freshline_lab.campaigns.recovery.overloads import overloaded

RULES: Final[tuple[Rule, ...]] = ("paper", "least-overrun", "least-error")


@dataclass(frozen=True, slots=True)
class ShedCheck:
    """By rule: whether the exact test passes afterwards, and the weighted error."""

    as_printed: bool
    schedulable: dict[str, bool]
    error: dict[str, float]

    def over_paper(self, rule: str) -> float:
        return self.error[rule] / self.error["paper"]


def shed_set(seed: int, with_best: bool = False) -> ShedCheck:
    """The check of a seed's set."""
    loads = overloaded(random.Random(seed))
    found = {rule: shed(loads, rule) for rule in RULES}
    costs: dict[str, list[int]] = {rule: each for rule, each in found.items() if each is not None}
    if with_best:
        costs["best"] = best(loads) or []
    return ShedCheck(
        is_schedulable(loads, as_printed(loads)),
        {rule: is_schedulable(loads, costs[rule]) for rule in costs},
        {rule: float(weighted_error(loads, costs[rule])) for rule in costs},
    )


def as_printed(loads: list[QueryLoad]) -> list[int]:
    """Algorithm 1 as printed: it cuts only the failing query, by its share (17) of the overrun."""
    order = by_priority(loads)
    ordered = [loads[place] for place in order]
    costs = [load.cost_us for load in ordered]
    for level, load in enumerate(ordered):
        upper = ordered[: level + 1]
        if holds(upper, level, costs):
            continue
        asked = sum(
            -(-load.period_us // each.period_us) * cost for each, cost in zip(upper, costs, strict=False)
        )
        ratios = [1 / (each.selectivity * each.weight) for each in upper]
        reduction = max(0, asked - load.period_us) * ratios[level] / sum(ratios, start=Fraction(0))
        costs[level] = max(1, costs[level] - ceil(reduction))
    in_definition_order = [0] * len(loads)
    for place, cost in zip(order, costs, strict=True):
        in_definition_order[place] = cost
    return in_definition_order
