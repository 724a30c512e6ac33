"""Recovery of steps after an outage: how many files a job may load, and when the backlog is done."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.step_rows import rows_of_steps
from freshline.planning.plan.step_graph import StepGraph
from freshline.planning.plan.step_placement import StepPlacement


class StepRecovery(StepGraph):
    """What a placement leaves for a backlog beside the files that come as declared (docs/placement.md)."""

    def __init__(self, warehouse: Warehouse, placed: StepPlacement) -> None:
        super().__init__(warehouse)
        self._placed = placed
        rows = rows_of_steps(warehouse)
        self._bursts_us = {name: rows[name].instances * cost_us for name, cost_us in placed.costs_us.items()}
        self._before_us = self.before_us(placed.sub_deadlines_us)
        self._on: dict[str, list[str]] = {}  # by node: its steps
        for name in warehouse.step_order:
            self._on.setdefault(placed.nodes[name], []).append(name)
        self._used = {node: self._share(names) for node, names in self._on.items()}

    def limit_us(self, node: str) -> int:
        """How long a job of recovery may hold the node: all other work is still in time.

        It is the longest step, which is counted as blocking anyway, plus what both conditions leave.
        """
        there = self._on[node]
        apart_us = min(self.distance_us(name) - self._before_us[name] for name in there)
        load_us = sum(self._bursts_us[name] for name in there)
        left_us = apart_us - self.hop_us(node) - load_us
        longest_us = max(self._placed.costs_us[name] for name in there)
        return max(longest_us, min(self._placed.limits_us.get(node, 0), left_us))

    def files_most(self, step: str) -> int:
        """How many files a job of recovery may have, of a step that loads a feed.

        Steps downstream compute all of them in one job too.
        """
        costs_us, nodes = self._placed.costs_us, self._placed.nodes
        downstream = [name for name, above in self.upstream.items() if step in above]
        return max(1, min(self.limit_us(nodes[name]) // costs_us[name] for name in downstream))

    def promises_us(self, backlog: Mapping[str, int], last_us: int = 0) -> dict[str, int | None]:
        """By step downstream of these feeds: how long after the backlog came it is done there.

        `backlog` has the number of files by feed; the last came `last_us` after the first. None: a node has
        no time left for them.
        """
        work_us = {
            node: sum(
                files * self._bursts_us[name]
                for feed, files in backlog.items()
                for name in names
                if feed in self.feeds[name]
            )
            for node, names in self._on.items()
        }
        since_us: dict[str, Fraction | None] = {}  # when all that a node reads for a step is there
        done_us: dict[str, Fraction | None] = {}
        for name in self.warehouse.step_order:
            if not self.feeds[name].isdisjoint(backlog):
                since_us[name] = self._since(name, since_us, done_us, last_us)
                done_us[name] = self._done(name, since_us[name], work_us)
        return {name: None if at is None else ceil(at) for name, at in done_us.items()}

    def _since(
        self,
        name: str,
        since_us: Mapping[str, Fraction | None],
        done_us: Mapping[str, Fraction | None],
        last_us: int,
    ) -> Fraction | None:
        nodes = self._placed.nodes
        found = [Fraction(last_us)]
        for source in self.warehouse.steps[name].sources:
            if source in done_us:
                same = nodes[source] == nodes[name]
                at = since_us[source] if same else done_us[source]
                if at is None:
                    return None
                found.append(at if same else at + self.hop_us(nodes[name]))
        return max(found)

    def _done(self, name: str, since_us: Fraction | None, work_us: Mapping[str, int]) -> Fraction | None:
        node = self._placed.nodes[name]
        if since_us is None or self._used[node] >= 1:
            return None
        return (since_us + work_us[node] + self._load(node)) / (1 - self._used[node])

    def _share(self, names: list[str]) -> Fraction:
        """The share of a node's time that files need which come as declared."""
        return sum(
            (Fraction(self._bursts_us[name], max(1, self.distance_us(name))) for name in names), Fraction(0)
        )

    def _load(self, node: str) -> Fraction:
        """Other work that may be there at once, with that of files on their way from other nodes."""
        found = Fraction(0)
        for name in self._on[node]:
            remote = any(self._placed.nodes[above] != node for above in self.upstream[name])
            before_us = self._before_us[name] if remote else 0
            found += self._bursts_us[name] * (1 + Fraction(before_us, max(1, self.distance_us(name))))
        return found
