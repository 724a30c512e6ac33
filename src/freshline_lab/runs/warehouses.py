"""Random warehouses and random faults, reproducible from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from fractions import Fraction

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.pools import Pool
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.bounds import longest_update_us, worst_case_us

_POLICIES: tuple[PolicyName, ...] = ("edf", "edf-strict", "clustered-edf")


@dataclass(frozen=True, slots=True)
class WarehouseShape:
    """The limits of a random warehouse."""

    tables_max: int = 24
    depth_max: int = 5
    tracks_max: int = 8
    policies: tuple[PolicyName, ...] = _POLICIES
    pools_max: int = 2


ANY_SHAPE = WarehouseShape()


def random_warehouse(seed: int, shape: WarehouseShape = ANY_SHAPE) -> Warehouse:
    """A warehouse whose pools are not overloaded: U is at most the number of tracks.

    It has continuous feeds and feeds of files, with phases, jitter and variable costs. Half of the warehouses
    have harmonic periods, the others arbitrary ones. A third has the highest possible load.
    """
    rng = random.Random(f"warehouse:{seed}")
    pools = {
        f"pool{number}": Pool(f"pool{number}", rng.randint(1, shape.tracks_max), rng.choice(shape.policies))
        for number in range(rng.randint(1, shape.pools_max))
    }
    draft = _Draft(rng, list(pools.values()), harmonic=rng.random() < 0.5)
    count = rng.randint(1, shape.tables_max)
    for number in range(count):
        draft.add_table(f"t{number}", shape.depth_max)
    return draft.warehouse(pools)


def with_random_blocking(warehouse: Warehouse, seed: int) -> Warehouse:
    """The same warehouse with pools that allow batches: rarely none, mostly a few updates, some long ones."""
    rng = random.Random(f"blocking:{seed}")
    costs_us = [
        worst_case_us(table.cost, table.period_us) for table in warehouse.tables.values() if table.cost
    ]
    pools = {
        name: replace(pool, blocking_us=rng.choice((0, 1, 2, 5, 20)) * rng.choice(costs_us))
        for name, pool in warehouse.pools.items()
    }
    return replace(warehouse, pools=pools)


def random_outages(warehouse: Warehouse, seed: int, horizon: int) -> dict[str, list[tuple[int, int]]]:
    """Outages of some feeds of files, by feed; at least one feed has an outage, if there is any feed.

    Each begins before `horizon` and lasts 2 to 30 periods of the feed. A feed has one or two; the second
    begins after the end of the first.
    """
    rng = random.Random(f"outages:{seed}")
    feeds = [feed for feed in warehouse.feeds.values() if feed.arrival == "files"]
    outages: dict[str, list[tuple[int, int]]] = {}
    for feed in rng.sample(feeds, rng.randint(min(1, len(feeds)), len(feeds))):
        assert feed.period_us is not None
        begin = rng.randrange(horizon)
        for _ in range(rng.randint(1, 2)):
            end = begin + rng.randint(2 * feed.period_us, 30 * feed.period_us)
            outages.setdefault(feed.name, []).append((begin, end))
            begin = end + rng.randint(1, 10 * feed.period_us)
            if begin >= horizon:
                break
    return outages


def random_gaps(warehouse: Warehouse, seed: int, horizon: int) -> dict[str, list[tuple[int, int]]]:
    """Times without rows, by feed: some that nearly all feeds share, and some of single feeds.

    A derived table only has a gap when all feeds above it do.
    """
    rng = random.Random(f"gaps:{seed}")
    gaps: dict[str, list[tuple[int, int]]] = {}
    for _ in range(rng.randint(1, 5)):
        begin, length_us = rng.randrange(horizon), rng.choice((10, 60, 300)) * SECOND
        alone = rng.random() < 0.2
        for feed in warehouse.feeds:
            if rng.random() < (0.3 if alone else 0.9):
                start = max(0, begin - rng.choice((0, rng.randint(0, length_us // 4))))
                gaps.setdefault(feed, []).append((start, begin + rng.randint(length_us // 2, length_us)))
    return gaps


def random_failures(warehouse: Warehouse, seed: int) -> dict[str, Fraction]:
    """The probability that a job fails, by table: for some tables, low or nearly 1.

    If a periodically released table fails, tests assert nothing about its pool. So that happens only in one
    of five warehouses, or if there are no other tables.
    """
    rng = random.Random(f"failures:{seed}")
    tables = [name for name in warehouse.tables if name in warehouse.released_by_files]
    if not tables or rng.random() < 0.2:
        tables = list(warehouse.tables)
    failing = rng.sample(tables, rng.randint(1, max(1, len(tables) // 2)))
    return {name: Fraction(rng.choice((2, 10, 40, 90)), 100) for name in failing}


def random_crashes(seed: int, horizon: int) -> list[tuple[int, int]]:
    """One to three consecutive times at which the runner is down, for a moment or for minutes."""
    rng = random.Random(f"crashes:{seed}")
    crashes = []
    start = 0
    for _ in range(rng.randint(1, 3)):
        start += rng.randint(1, horizon // 3)
        back_at = start + rng.choice((0, rng.randint(1, SECOND), rng.randint(1, 120 * SECOND)))
        crashes.append((start, back_at))
        start = back_at
    return crashes


def crowded_warehouse(seed: int) -> Warehouse:
    """A few tables of files on one nearly full track, with very different periods.

    A late table stays late for long here, because there is little slack for recovery.
    """
    rng = random.Random(f"crowded:{seed}")
    parts = [rng.randint(1, 10) for _ in range(rng.randint(3, 5))]
    load = Fraction(rng.randint(80, 100), 100) / sum(parts)
    feeds: dict[str, Feed] = {}
    tables: dict[str, Table] = {}
    for number, part in enumerate(parts):
        name, period_us = f"t{number}", rng.randint(1, 100) * SECOND
        jitter_us = rng.choice((0, 0, rng.randint(0, period_us // 2)))
        feed = Feed(name, "files", period_us, phase_us=rng.randint(0, period_us), jitter_us=jitter_us)
        table = Table(name, "updates", period_us, feed=name)
        budget_us = int(load * part * period_us) - 2
        startup_us = rng.choice((budget_us, rng.randint(0, budget_us)))
        rate = Fraction(budget_us - startup_us, longest_update_us(table, feed))
        feeds[name] = feed
        tables[name] = replace(table, cost=Cost(startup_us, rate, Fraction(0)))
    pools = {"updates": Pool("updates", 1, "aus-slack")}
    return Warehouse("crowded", "./warehouse", pools, feeds, tables, tuple(tables), frozenset(tables))


def long_outages(warehouse: Warehouse, seed: int, until: int) -> dict[str, list[tuple[int, int]]]:
    """Outages of some, but not all, feeds of files. They end at the same time; some began long before."""
    rng = random.Random(f"long outages:{seed}")
    outages: dict[str, list[tuple[int, int]]] = {}
    feeds = [feed for feed in warehouse.feeds.values() if feed.arrival == "files"]
    for feed in rng.sample(feeds, rng.randint(1, len(feeds) - 1)):
        assert feed.period_us is not None
        outages[feed.name] = [(rng.randrange(until - 2 * feed.period_us), until)]
    return outages


class _Draft:
    """A warehouse under construction, table by table."""

    def __init__(self, rng: random.Random, pools: list[Pool], harmonic: bool) -> None:
        self.rng = rng
        self.harmonic = harmonic
        self.spare = {pool.name: self._capacity(pool.tracks) for pool in pools}
        self.feeds: dict[str, Feed] = {}
        self.tables: dict[str, Table] = {}
        self.depth: dict[str, int] = {}
        self.released_by_files: set[str] = set()

    def _capacity(self, tracks: int) -> Fraction:
        return Fraction(tracks) * (1 if self.rng.random() < 0.33 else Fraction(self.rng.randint(30, 99), 100))

    def _period_us(self) -> int:
        if self.harmonic:
            return self.rng.choice((1, 2, 4, 8, 16, 32)) * SECOND
        return self.rng.randint(100_000, 30 * SECOND)

    def _phase_us(self, period_us: int) -> int:
        if self.rng.random() < 0.4:
            return 0
        return self.rng.randint(0, 3 * period_us)

    def add_table(self, name: str, depth_max: int) -> None:
        sources = [table for table in self.tables if self.depth[table] < depth_max]
        if sources and self.rng.random() < 0.55:
            chosen = tuple(self.rng.sample(sources, self.rng.randint(1, min(3, len(sources)))))
            self._add_derived(name, chosen)
        else:
            self._add_base(name)

    def _add_derived(self, name: str, sources: tuple[str, ...]) -> None:
        period_us = self._period_us()
        if self.released_by_files.isdisjoint(sources):
            phase_us = self._phase_us(period_us)
        else:
            phase_us = 0
            self.released_by_files.add(name)
        self.depth[name] = 1 + max(self.depth[source] for source in sources)
        self._add(Table(name, self._pool(), period_us, sources=sources, phase_us=phase_us), period_us)

    def _add_base(self, name: str) -> None:
        period_us = self._period_us()
        self.depth[name] = 1
        if self.rng.random() < 0.5:
            self.feeds[name] = Feed(name, "continuous", period_us)
            table = Table(name, self._pool(), period_us, feed=name, phase_us=self._phase_us(period_us))
            self._add(table, period_us)
            return
        feed = Feed(
            name,
            "files",
            period_us,
            phase_us=self._phase_us(period_us),
            jitter_us=self.rng.choice((0, self.rng.randint(0, period_us))),
            timestamp_jitter_us=self.rng.choice((0, self.rng.randint(0, 2 * period_us))),
        )
        self.feeds[name] = feed
        self.released_by_files.add(name)
        table = Table(name, self._pool(), period_us, feed=name)
        self._add(table, longest_update_us(table, feed))

    def _pool(self) -> str:
        return self.rng.choice(list(self.spare))

    def _add(self, table: Table, longest_us: int) -> None:
        """Gives the table a cost that its pool can still carry, or leaves it out."""
        spare = min(self.spare[table.pool], Fraction(1))
        # Mostly small shares, so that there are more tables than tracks; sometimes all that is left.
        share = spare if self.rng.random() < 0.15 else spare * Fraction(self.rng.randint(1, 60), 100)
        variability = self.rng.choice((Fraction(0), Fraction(1, 5), Fraction(1, 2)))
        budget_us = int(share * table.period_us / (1 + variability)) - 2
        if budget_us < 2:
            self.feeds.pop(table.name, None)
            self.depth.pop(table.name)
            self.released_by_files.discard(table.name)
            return
        startup_us = self.rng.choice((0, budget_us, self.rng.randint(0, budget_us)))
        rate = Fraction(budget_us - startup_us, longest_us)
        cost = Cost(startup_us, rate, variability)
        used = Fraction(int((1 + variability) * budget_us) + 2, table.period_us)
        self.spare[table.pool] -= used
        self.tables[table.name] = Table(
            table.name,
            table.pool,
            table.period_us,
            table.feed,
            table.sources,
            phase_us=table.phase_us,
            cost=cost,
        )

    def warehouse(self, pools: dict[str, Pool]) -> Warehouse:
        if not self.tables:
            self.spare = {name: Fraction(1) for name in self.spare}
            self._add_base("t0")
        return Warehouse(
            name="random",
            storage="./warehouse",
            pools=pools,
            feeds=self.feeds,
            tables=self.tables,
            topological_order=tuple(self.tables),
            released_by_files=frozenset(self.released_by_files & self.tables.keys()),
        )
