"""The graph of tables: an order with sources first, and the cycles that make such an order impossible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush


def topological_order(sources: Mapping[str, Sequence[str]]) -> list[str]:
    """Every table after its sources, ties by order of definition; without those on or behind a cycle.

    >>> topological_order({"daily": ["hourly"], "hourly": [], "weekly": ["daily"]})
    ['hourly', 'daily', 'weekly']
    """
    names = list(sources)
    number = {name: position for position, name in enumerate(names)}
    readers: list[list[int]] = [[] for _ in names]
    waiting = [len(sources[name]) for name in names]
    for name in names:
        for source in sources[name]:
            readers[number[source]].append(number[name])
    free = [position for position, count in enumerate(waiting) if count == 0]
    heapify(free)
    order = []
    while free:
        table = heappop(free)
        order.append(names[table])
        for reader in readers[table]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heappush(free, reader)
    return order


def cycles(sources: Mapping[str, Sequence[str]], ordered: Iterable[str]) -> list[list[str]]:
    """Cycles among the tables without an order. No two share a table; each starts at its first defined one.

    >>> cycles({"hosts": [], "a": ["hosts", "b"], "b": ["a"]}, ["hosts"])
    [['a', 'b']]
    """
    number = {name: position for position, name in enumerate(sources)}
    stuck = sources.keys() - set(ordered)
    walked_from: dict[str, str] = {}
    found = []
    for start in sorted(stuck, key=number.__getitem__):
        way: list[str] = []
        table = start
        # Each of these tables has a source among them, so the walk must come back to a table it has seen.
        while table not in walked_from:
            walked_from[table] = start
            way.append(table)
            table = next(source for source in sources[table] if source in stuck)
        if way and walked_from[table] == start:
            cycle = way[way.index(table) :]
            first = cycle.index(min(cycle, key=number.__getitem__))
            found.append(cycle[first:] + cycle[:first])
    return found
