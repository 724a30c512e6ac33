"""Builds warehouses in a line or two, with times in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Self

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.pools import Pool, Provisioning, Recovery
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse

Seconds = int | float | Fraction


def _us(seconds: Seconds) -> int:
    microseconds = _fraction(seconds) * SECOND
    assert microseconds.denominator == 1, f"{seconds} s is not a whole number of microseconds"
    return int(microseconds)


class Builder:
    """Builds a warehouse table by table; sources first. One pool, `updates`, unless more are added.

    >>> warehouse = Builder(tracks=2).files("a", period=300, cost=33).derived("b", ["a"], period=900).build()
    >>> warehouse.topological_order
    ('a', 'b')
    """

    def __init__(
        self,
        tracks: int = 1,
        policy: PolicyName = "edf",
        cluster_factor: int = 10,
        provisioning: Provisioning = "worst",
        recovery: Recovery = "fastest",
        blocking: Seconds = 0,
    ) -> None:
        pool = Pool("updates", tracks, policy, Fraction(cluster_factor), provisioning, recovery)
        self._pools = {"updates": replace(pool, blocking_us=_us(blocking))}
        self._feeds: dict[str, Feed] = {}
        self._tables: dict[str, Table] = {}
        self._released_by_files: set[str] = set()

    def pool(self, name: str, tracks: int = 1, policy: PolicyName = "edf") -> Self:
        self._pools[name] = Pool(name, tracks, policy)
        return self

    def continuous(
        self,
        name: str,
        *,
        period: Seconds,
        phase: Seconds = 0,
        cost: Seconds = 1,
        rate: Seconds = 0,
        variability: Seconds = 0,
        target: Seconds | None = None,
        pool: str = "updates",
    ) -> Self:
        """Adds a base table and its continuous feed of the same name."""
        self._feeds[name] = Feed(name, "continuous", _us(period))
        return self._add(name, period, pool, cost, rate, variability, target, feed=name, phase_us=_us(phase))

    def files(
        self,
        name: str,
        *,
        period: Seconds,
        phase: Seconds = 0,
        jitter: Seconds = 0,
        timestamp_jitter: Seconds = 0,
        cost: Seconds = 1,
        rate: Seconds = 0,
        variability: Seconds = 0,
        target: Seconds | None = None,
        pool: str = "updates",
        late_after: Seconds | None = None,
        weight: Seconds = 1,
    ) -> Self:
        """Adds a base table and its feed of files of the same name."""
        self._feeds[name] = Feed(name, "files", _us(period), _us(phase), _us(jitter), _us(timestamp_jitter))
        self._released_by_files.add(name)
        self._add(name, period, pool, cost, rate, variability, target, feed=name)
        return self._recovering(name, late_after, weight)

    def derived(
        self,
        name: str,
        sources: Sequence[str],
        *,
        period: Seconds,
        phase: Seconds = 0,
        cost: Seconds = 1,
        rate: Seconds = 0,
        variability: Seconds = 0,
        target: Seconds | None = None,
        pool: str = "updates",
        late_after: Seconds | None = None,
        weight: Seconds = 1,
    ) -> Self:
        """Adds a table over tables that were added before."""
        if not self._released_by_files.isdisjoint(sources):
            self._released_by_files.add(name)
        self._add(
            name, period, pool, cost, rate, variability, target, sources=tuple(sources), phase_us=_us(phase)
        )
        return self._recovering(name, late_after, weight)

    def build(self) -> Warehouse:
        return Warehouse(
            name="test",
            storage="./warehouse",
            pools=self._pools,
            feeds=self._feeds,
            tables=self._tables,
            topological_order=tuple(self._tables),
            released_by_files=frozenset(self._released_by_files),
        )

    def _add(
        self,
        name: str,
        period: Seconds,
        pool: str,
        cost: Seconds,
        rate: Seconds,
        variability: Seconds,
        target: Seconds | None,
        *,
        feed: str | None = None,
        sources: tuple[str, ...] = (),
        phase_us: int = 0,
    ) -> Self:
        self._tables[name] = Table(
            name,
            pool,
            _us(period),
            feed=feed,
            sources=sources,
            phase_us=phase_us,
            target_lag_us=None if target is None else _us(target),
            cost=Cost(_us(cost), _fraction(rate), _fraction(variability)),
        )
        return self

    def _recovering(self, name: str, late_after: Seconds | None, weight: Seconds) -> Self:
        late_after_us = None if late_after is None else _us(late_after)
        self._tables[name] = replace(
            self._tables[name], late_after_us=late_after_us, weight=_fraction(weight)
        )
        return self


def _fraction(number: Seconds) -> Fraction:
    # 0.1 means exactly a tenth, not the nearest float.
    return Fraction(str(number)) if isinstance(number, float) else Fraction(number)
