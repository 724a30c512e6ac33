"""Advice for targets that are not proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from freshline.base.duration import format_duration
from freshline.definitions.language.policies import POLICIES
from freshline.planning.analysis.utilization import readable
from freshline.planning.plan.least_tracks import LeastTracks
from freshline.planning.plan.plan import PoolPlan, TablePlan
from freshline.planning.plan.staleness import StalenessModel

# This many tables are named one by one; the others are counted.
_NAMED_MAX = 8


def advise(
    pools: Sequence[PoolPlan],
    tables: Mapping[str, TablePlan],
    least: Sequence[LeastTracks],
    model: StalenessModel,
) -> list[str]:
    """Sentences, pool by pool: its faults, what more tracks would do, which targets to relax.

    `tables` are in the order of definition; `least` has for each pool how many tracks are enough, and for
    which tables.
    """
    advice: list[str] = []
    remedies = None
    for pool, answer in zip(pools, least, strict=True):
        own = [tables[name] for name in pool.tables]
        failing = [table for table in own if not table.holds]
        if failing:
            advice += _pool_troubles(pool, own)
        advice += _in_vain(pool, answer) + _tracks_that_do(pool, answer, tables)
        if failing:
            remedies = remedies or _Remedies(tables, least, model)
            advice += remedies.of_several([table for table in failing if not _too_costly(table)])
    return advice


def counted(number: int, noun: str) -> str:
    """A number of things: 1 track, 2 tracks."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _pool_troubles(pool: PoolPlan, own: Sequence[TablePlan]) -> list[str]:
    too_costly = [table for table in own if _too_costly(table)]
    troubles = [
        f"{table.name}: one update may cost {format_duration(table.cost_us)}, more than its period of "
        f"{format_duration(table.period_us)}: lengthen the period or make the update cheaper."
        for table in too_costly[:_NAMED_MAX]
    ] + _more(too_costly)
    if not pool.fits:
        needed = readable(pool.utilization, pool.tracks, pool.fits, digits=2)
        troubles.append(
            f"Pool {pool.name} is overloaded: its tables need {needed} of {counted(pool.tracks, 'track')}."
        )
    elif not POLICIES[pool.policy].proven:
        troubles.append(f"Pool {pool.name}: no staleness bound is known for policy {pool.policy}.")
    elif too_costly and sum(table.response_bound_us is None for table in own) > len(too_costly):
        troubles.append(f"Pool {pool.name}: until then other tables on the same tracks have no bound either.")
    return troubles


def _in_vain(pool: PoolPlan, answer: LeastTracks) -> list[str]:
    if answer.in_vain is None:
        return []
    first, last = answer.in_vain
    tried = f"{first} to {last}" if first < last else f"{last}"
    unknown = f"the least number of tracks with {pool.policy} is not known"
    return [f"Pool {pool.name}: {unknown}; tried without success: {tried}."]


def _tracks_that_do(pool: PoolPlan, answer: LeastTracks, tables: Mapping[str, TablePlan]) -> list[str]:
    if answer.tracks is None:
        return []
    failing = [table for table in tables.values() if not table.holds and table.name in answer.tables]
    others = [table.name for table in failing if table.pool != pool.name and table.target_lag_us is not None]
    does = []
    if any(table.pool == pool.name for table in failing):
        own = [name for name in pool.tables if name in answer.tables]
        what = "its tables" if len(own) == len(pool.tables) else "its tables that tracks can prove"
        targets = any(tables[name].target_lag_us is not None for name in own)
        does.append(f"prove every target of {what}" if targets else "bound all of its tables")
    if others:
        does.append(f"prove the target{'s' if len(others) > 1 else ''} of {_named(others)}")
    if not does:
        return []
    under = "" if pool.policy == answer.policy else f" with policy {answer.policy}"
    return [f"Pool {pool.name}: {counted(answer.tracks, 'track')}{under} would {' and '.join(does)}."]


class _Remedies:
    """Advice for single tables with a cost within their period."""

    def __init__(
        self,
        tables: Mapping[str, TablePlan],
        least: Sequence[LeastTracks],
        model: StalenessModel,
    ) -> None:
        self._tables = tables
        self._model = model
        # Already proven by an advised number of tracks.
        self._helped = frozenset[str]().union(*(one.tables for one in least if one.tracks is not None))
        self._hopeless = {table.pool for table in tables.values() if _too_costly(table)}
        # As if no table were ever tardy: the limit of what tracks can do.
        self._best = model.bounds(
            {name: None if _too_costly(table) else table.period_us for name, table in tables.items()}
        )

    def of_several(self, failing: Sequence[TablePlan]) -> list[str]:
        sentences = [sentence for table in failing[:_NAMED_MAX] for sentence in self._of(table)]
        return sentences + _more(failing) if sentences else []

    def _of(self, table: TablePlan) -> list[str]:
        best_us = self._best[table.name]
        target_us, bound_us = table.target_lag_us, table.staleness_bound_us
        sentences = []
        if target_us is not None and bound_us is not None:
            bound = format_duration(bound_us, up=True)
            sentences.append(f"{table.name}: a target_lag of {bound} holds as it is.")
        if table.name in self._helped:
            return sentences
        if best_us is not None and target_us is not None and best_us > target_us:
            target, reach = format_duration(target_us), format_duration(best_us, up=True)
            sentences.append(
                f"{table.name}: no number of tracks proves {target}: even with a track for each table it is "
                f"{reach}. Shorten its period or its sources'."
            )
            return sentences
        tardy = self._tardy_pools(table.name)
        if best_us is None or self._hopeless.intersection(tardy) - {table.pool}:
            sentences.append(f"{table.name}: fix the tables that it reads first; one of them has no bound.")
        elif table.pool not in self._hopeless:
            what = "a bound" if target_us is None else format_duration(target_us)
            sentences.append(
                f"{table.name}: {what} can be proven, but by no change of one pool alone: it takes "
                f"{_listed(tardy)}."
            )
        return sentences

    def _tardy_pools(self, name: str) -> list[str]:
        """The pools in which this table, or one upstream of it, may be tardy."""
        seen = {name}
        ahead = [name]
        tardy: dict[str, None] = {}  # as a set in order
        while ahead:
            at = ahead.pop()
            table = self._tables[at]
            if table.response_bound_us != table.period_us:
                tardy[table.pool] = None
            for source in self._model.sources[at]:
                if source not in seen and source in self._tables:
                    seen.add(source)
                    ahead.append(source)
        return sorted(tardy)


def _too_costly(table: TablePlan) -> bool:
    return table.cost_us > table.period_us


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED_MAX
    return _listed([*names[:_NAMED_MAX], counted(rest, "more table")] if rest > 0 else names)


def _more(tables: Sequence[object]) -> list[str]:
    rest = len(tables) - _NAMED_MAX
    return [f"... and {counted(rest, 'more table')}."] if rest > 0 else []
