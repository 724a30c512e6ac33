"""What would help where a target is not proven."""

from __future__ import annotations

from collections.abc import Sequence

from freshline.definitions.duration import format_duration
from freshline.plan.plan import PoolPlan, TablePlan
from freshline.plan.tracks import PROVEN

# So many tables are named one by one; the rest is counted.
_NAMED_MAX = 8


def advise(
    pools: Sequence[PoolPlan],
    tables: Sequence[TablePlan],
    least: Sequence[int | None],
    best: Sequence[Sequence[int | None]],
) -> list[str]:
    """Sentences, for each pool with a target that is not proven.

    `least` is the least number of tracks that would prove all (under edf where the policy has no proof);
    `best` are the bounds if each table of the pool had a track of its own.
    """
    advice: list[str] = []
    for pool, tracks, bounds in zip(pools, least, best, strict=True):
        failing = [tables[index] for index in pool.tables if not tables[index].holds]
        if failing:
            own_bounds = {tables[index].name: bounds[index] for index in pool.tables}
            advice += _advise_pool(
                pool, [tables[index] for index in pool.tables], failing, tracks, own_bounds
            )
    return advice


def _advise_pool(
    pool: PoolPlan,
    tables: Sequence[TablePlan],
    failing: Sequence[TablePlan],
    tracks: int | None,
    best: dict[str, int | None],
) -> list[str]:
    too_costly = [table for table in tables if table.cost_us > table.period_us]
    if too_costly:
        return [
            f"{table.name}: one update may cost {format_duration(table.cost_us)}, more than its period of "
            f"{format_duration(table.period_us)}: lengthen the period or make the update cheaper."
            for table in too_costly[:_NAMED_MAX]
        ] + _more(too_costly)
    advice = []
    if not pool.fits:
        advice.append(
            f"Pool {pool.name} is overloaded: its tables need {pool.utilization:.2f} of {pool.tracks} tracks."
        )
    elif pool.policy not in PROVEN:
        advice.append(f"Pool {pool.name}: no staleness bound is known for policy {pool.policy}.")
    if tracks is not None:
        under = "" if pool.policy in PROVEN else " with policy edf"
        advice.append(f"Pool {pool.name}: {_count(tracks)}{under} would prove every target of its tables.")
    advice += _relax(failing, best, tracks)
    return advice


def _relax(failing: Sequence[TablePlan], best: dict[str, int | None], tracks: int | None) -> list[str]:
    """Which targets to relax: to the present bound, or where no tracks help to the best there is."""
    advice = []
    for table in failing[:_NAMED_MAX]:
        target_us, bound_us, best_us = table.target_lag_us, table.staleness_bound_us, best[table.name]
        if target_us is not None and bound_us is not None:
            bound = format_duration(bound_us, up=True)
            advice.append(f"{table.name}: a target_lag of {bound} holds as it is.")
        if tracks is not None:
            continue
        if best_us is None:
            advice.append(f"{table.name}: mend the tables it reads first; one of them has no bound.")
        elif target_us is not None and best_us > target_us:
            target, reach = format_duration(target_us), format_duration(best_us, up=True)
            advice.append(
                f"{table.name}: no number of tracks proves {target}: even with a track of its own it is "
                f"{reach}. Shorten its period or its sources'."
            )
    return advice + _more(failing)


def _count(tracks: int) -> str:
    return "1 track" if tracks == 1 else f"{tracks} tracks"


def _more(tables: Sequence[TablePlan]) -> list[str]:
    rest = len(tables) - _NAMED_MAX
    return [f"... and {rest} more tables."] if rest > 0 else []
