"""The reach of a pool: the tables that its tardiness makes staler, in any pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from freshline.planning.plan.plan import TablePlan
from freshline.planning.plan.staleness import StalenessModel


class _Reached(NamedTuple):
    """A table of the pool, or one downstream of it."""

    member: int  # its place in the pool; for a table of another pool, one past the last
    rest_us: int  # the part of its bound from neither the pool's tardiness nor its sources
    upstream_us: int  # the largest bound of the sources out of reach
    sources: tuple[int, ...]  # the others, by their place among the reached tables


class Reach:
    """The staleness bounds of all tables within a pool's reach, for any tardiness of its own tables.

    Other pools are as they are; tables without a bound because of them are left out.
    """

    def __init__(
        self, members: Sequence[str], tables: Mapping[str, TablePlan], model: StalenessModel
    ) -> None:
        member_of = {name: member for member, name in enumerate(members)}
        influenced = _downstream(members, model.readers)
        bounds_us = {name: table.staleness_bound_us for name, table in tables.items()} | {**model.steps_us}
        place_of: dict[str, int] = {}
        self._reached: list[_Reached] = []
        for name in sorted(influenced, key=model.position.__getitem__):
            table, sources = tables[name], model.sources[name]
            member = member_of.get(name, len(members))
            response_us = table.response_bound_us if member == len(members) else table.period_us
            within = tuple(place_of[source] for source in sources if source in place_of)
            known = [
                bound_us
                for source in sources
                if source not in influenced and (bound_us := bounds_us.get(source)) is not None
            ]
            if response_us is not None and len(within) + len(known) == len(sources):
                place_of[name] = len(self._reached)
                rest_us = response_us + model.own_us[name]
                self._reached.append(_Reached(member, rest_us, max(known, default=0), within))
        # If a target does not hold even without tardiness in the pool, its tracks cannot help.
        best = self.bounds([0] * len(members))
        targets = {name: tables[name].target_lag_us for name in place_of}
        self.attainable = frozenset(
            name for name, target in targets.items() if target is None or best[place_of[name]] <= target
        )
        self._limits = [
            (place_of[name], target)
            for name, target in targets.items()
            if target is not None and name in self.attainable
        ]

    @property
    def target_most(self) -> int | None:
        """The largest attainable target; None without one."""
        return max((target for _, target in self._limits), default=None)

    def bounds(self, tardiness: Sequence[int]) -> list[int]:
        """The bound of every table within reach, each after its sources."""
        late = [*tardiness, 0]
        bounds: list[int] = []
        for member, rest, upstream, sources in self._reached:
            for source in sources:
                if bounds[source] > upstream:
                    upstream = bounds[source]
            bounds.append(upstream + rest + late[member])
        return bounds

    def holds(self, tardiness: Sequence[int]) -> bool:
        """Whether every attainable target holds with these tardiness bounds."""
        bounds = self.bounds(tardiness)
        return all(bounds[place] <= target for place, target in self._limits)

    def most(self, fixed: Sequence[int]) -> int | None:
        """The largest y for which all attainable targets hold with Y = fixed + y; None if none is limited.

        They must hold for y = 0. Each A(V) is the largest of several sums of constants and one y for each of
        the pool's tables on a path: convex and increasing in y. So steps from a y that is too large along the
        slope of a violated target never pass the answer (Newton's method).
        """
        if not self._limits:
            return None
        y = max(target for _, target in self._limits)
        while True:
            late = [part + y for part in fixed]
            bounds = self.bounds(late)
            slopes = self._slopes(bounds, len(fixed))
            steps = [
                -((target - bounds[place]) // slopes[place])
                for place, target in self._limits
                if bounds[place] > target
            ]
            if not steps:
                return y
            y -= max(steps)

    def _slopes(self, bounds: Sequence[int], members: int) -> list[int]:
        """How many tables of the pool lie on the path that decides each table's bound."""
        slopes: list[int] = []
        for member, _, upstream, sources in self._reached:
            slope = 0
            for source in sources:
                if bounds[source] > upstream:
                    upstream = bounds[source]
                    slope = slopes[source]
            slopes.append(slope + (member < members))
        return slopes


def _downstream(members: Sequence[str], readers: Mapping[str, Sequence[str]]) -> set[str]:
    """These tables and all downstream of them."""
    reached = set(members)
    ahead = list(members)
    while ahead:
        for reader in readers[ahead.pop()]:
            if reader not in reached:
                reached.add(reader)
                ahead.append(reader)
    return reached
