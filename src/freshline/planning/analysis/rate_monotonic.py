"""Preemptive rate-monotonic scheduling on one track: exact worst response times (Lehoczky 1990).

Priorities go by period, the shorter first, ties by the order of the tasks. The deadline may be longer than
the period. Then the first job after the critical instant need not be the worst one, so all jobs of the
level-i busy period are examined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from freshline.planning.analysis.exact import (
    SCALE,
    BracketedRational,
    ceiling_of,
    exact_sum,
    scaled_quotients,
)

# The most quotients ⌈t/p_j⌉ for one task, each a fraction of a microsecond, before giving up.
QUOTIENTS_MAX = 3_000_000


@dataclass(frozen=True, slots=True)
class ResponseTime:
    """The worst response time of a task, or why there is none."""

    time: int | None
    reason: str | None = None
    at_least: int | None = None  # the longest one seen, if the worst was not reached

    def within(self, deadline: int) -> bool | None:
        """Whether no job is later than a deadline; `None` if that is unknown."""
        if self.time is not None:
            return self.time <= deadline
        return None if self.at_least is not None and self.at_least <= deadline else False


def response_times(
    costs: Sequence[int], periods: Sequence[int], quotients_max: int = QUOTIENTS_MAX
) -> list[ResponseTime]:
    """The worst response time of each task over its level-i busy period (Lehoczky 1990).

    Job q = 0, 1, … of task i finishes at the least t with t = (q+1)·e_i + Σ_{j before i} ⌈t/p_j⌉·e_j, counted
    from the critical instant; the busy period is over when that is no later than (q+1)·p_i.

    >>> [response.time for response in response_times([26, 62], [70, 100])]
    [26, 118]
    """
    by_priority = sorted(range(len(costs)), key=periods.__getitem__)
    ordered_costs = [costs[task] for task in by_priority]
    ordered_periods = [periods[task] for task in by_priority]
    scaled = [0, *accumulate(scaled_quotients(ordered_costs, ordered_periods))]
    results = [ResponseTime(None)] * len(costs)
    for level, task in enumerate(by_priority, start=1):
        of_level = ordered_costs[:level], ordered_periods[:level]
        if _level_utilization(*of_level, scaled[level]).at_most(1):
            results[task] = _response_time(*of_level, scaled[level - 1], quotients_max)
        else:
            results[task] = ResponseTime(
                None, "unbounded: the tasks of its priority and above need more than one track"
            )
    return results


def all_within(responses: Sequence[ResponseTime], deadlines: Sequence[int]) -> bool | None:
    """Whether every response time is within its deadline; `None` if that depends on an unknown one.

    With the periods as deadlines this is the verdict of the test over the scheduling points (Lehoczky, Sha
    and Ding 1989; paper 000, C1).
    """
    verdicts = [response.within(deadline) for response, deadline in zip(responses, deadlines, strict=True)]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _level_utilization(costs: Sequence[int], periods: Sequence[int], scaled: int) -> BracketedRational:
    return BracketedRational(scaled, scaled + len(costs), lambda: exact_sum(costs, periods))


def _response_time(
    costs: Sequence[int], periods: Sequence[int], utilization_above: int, quotients_max: int
) -> ResponseTime:
    """The worst response of the last of these tasks, of the lowest priority; all together have U ≤ 1."""
    cost, period = costs[-1], periods[-1]
    above = list(zip(costs[:-1], periods[:-1], strict=True))
    steps_left = steps_max = quotients_max // len(costs)
    worst = finish = done = 0
    while done == 0 or finish > done * period:
        done += 1
        # finish ≥ done·e_i + U_above·finish: starting there saves nearly all steps if U is close to 1.
        demand = max(finish + cost, ceiling_of(done * cost * SCALE, SCALE - utilization_above))
        while demand > finish:
            finish = demand
            worst = max(worst, finish - (done - 1) * period)
            if steps_left == 0:
                reason = f"unknown: its busy period takes more than {steps_max:,} steps to follow"
                return ResponseTime(None, reason, at_least=worst)
            steps_left -= 1
            demand = done * cost + sum([-(-finish // p) * e for e, p in above])
    return ResponseTime(worst)
