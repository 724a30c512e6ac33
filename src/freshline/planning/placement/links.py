"""Which nodes a stream can reach over the links, and by which path.

A set of nodes is the bits of an integer: a plan tests thousands of pairs for reachability.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Hop(NamedTuple):
    """A stream goes from one node to the next."""

    stream: str
    from_node: int
    to_node: int


@dataclass(frozen=True, slots=True)
class Links:
    """By node, in the order of the file: the ends of its links, and all nodes reached, itself included."""

    next: tuple[tuple[int, ...], ...]
    reaches: tuple[int, ...]
    reached_from: tuple[int, ...]

    @classmethod
    def of(cls, nodes: int, pairs: Iterable[tuple[int, int]] | None) -> Links:
        if pairs is None:
            pairs = [(one, other) for one in range(nodes) for other in range(nodes)]
        ways: list[set[int]] = [set() for _ in range(nodes)]
        for one, other in pairs:
            if one != other:
                ways[one].add(other)
        following = tuple(tuple(sorted(each)) for each in ways)
        reaches = tuple(_bits(_ways_back(following, (node,))) for node in range(nodes))
        reached_from = tuple(
            _bits(one for one in range(nodes) if reaches[one] >> node & 1) for node in range(nodes)
        )
        return cls(following, reaches, reached_from)

    @property
    def connect_all(self) -> bool:
        everything = (1 << len(self.next)) - 1
        return all(reached == everything for reached in self.reaches)

    def after(self, nodes: int) -> int:
        """All nodes that one of these nodes reaches."""
        return _union(self.reaches, nodes)

    def before(self, nodes: int) -> int:
        """All nodes that reach one of these nodes."""
        return _union(self.reached_from, nodes)

    def tree(self, stream: str, origins: Sequence[int], goals: Iterable[int]) -> list[Hop]:
        """The hops of a shortest-path tree from the origins to the goals: no node gets the stream twice."""
        before = _ways_back(self.next, origins)
        hops: dict[int, Hop] = {}
        for goal in sorted(set(goals)):
            while goal not in hops and before[goal] is not None:
                previous = before[goal]
                assert previous is not None
                hops[goal] = Hop(stream, previous, goal)
                goal = previous
        return [hops[node] for node in before if node in hops]


def members(nodes: int) -> list[int]:
    """The nodes of a set, in order."""
    found = []
    while nodes:
        lowest = nodes & -nodes
        found.append(lowest.bit_length() - 1)
        nodes ^= lowest
    return found


def _ways_back(following: Sequence[Sequence[int]], origins: Sequence[int]) -> Mapping[int, int | None]:
    """By reached node, nearest first: the node before it on the path; None for an origin."""
    before: dict[int, int | None] = dict.fromkeys(origins)
    waiting = deque(origins)
    while waiting:
        node = waiting.popleft()
        for other in following[node]:
            if other not in before:
                before[other] = node
                waiting.append(other)
    return before


def _bits(nodes: Iterable[int]) -> int:
    found = 0
    for node in nodes:
        found |= 1 << node
    return found


def _union(sets: Sequence[int], nodes: int) -> int:
    found = 0
    for node in members(nodes):
        found |= sets[node]
    return found
