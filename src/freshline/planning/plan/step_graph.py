"""The graph of a warehouse's steps: what they are computed from, and how stale they can become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from freshline.base.duration import MILLISECOND
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.warehouse import Warehouse
from freshline.planning.plan.step_placement import StepPlacement

# From a commit on one node to the start of the job on another that reads it.
HOP_US: Final = 150 * MILLISECOND


class StepGraph:
    """The steps of a warehouse, with figures from their places in the graph; costs do not matter here."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.upstream: dict[str, frozenset[str]] = {}  # by step: itself and all steps upstream
        self.feeds: dict[str, frozenset[str]] = {}  # by step: the feeds upstream
        for name in warehouse.step_order:
            step = warehouse.steps[name]
            above = [self.upstream[source] for source in step.sources]
            self.upstream[name] = frozenset({name}).union(*above)
            own = frozenset() if step.feed is None else frozenset({step.feed})
            self.feeds[name] = own.union(*(self.feeds[source] for source in step.sources))

    @property
    def outputs(self) -> list[str]:
        return [name for name, step in self.warehouse.steps.items() if step.deadline_us is not None]

    def before_us(self, sub_deadlines_us: Mapping[str, int]) -> dict[str, int]:
        """By step: the longest sum of sub-deadlines of the steps before it."""
        found: dict[str, int] = {}
        for name in self.warehouse.step_order:
            sources = self.warehouse.steps[name].sources
            found[name] = max((found[source] + sub_deadlines_us[source] for source in sources), default=0)
        return found

    def staleness_us(self, placed: StepPlacement) -> dict[str, int]:
        """By step of a proven output: how stale it can become, until the next file reaches it."""
        before_us = self.before_us(placed.sub_deadlines_us)
        proven = [self.upstream[output] for output in self.outputs if output not in placed.unproven]
        found = {}
        for name in frozenset().union(*proven):
            next_file_us = max(
                feed.next_file_us + feed.timestamp_jitter_us + feed.landing.lateness_us
                for feed in self.feeds_of(name)
            )
            done_us = before_us[name] + placed.sub_deadlines_us[name]
            found[name] = next_file_us + self.align_us(name) + done_us
        return found

    def feeds_of(self, name: str) -> list[Feed]:
        return [self.warehouse.feeds[feed] for feed in self.feeds[name]]

    def distance_us(self, name: str) -> int:
        """The least distance between two bursts of a step."""
        return min(least_distance_us(feed) for feed in self.feeds_of(name))

    def hop_us(self, node: str) -> int:
        """How long a node takes to find another node's commit; 0 if it reads no other."""
        links, nodes = self.warehouse.links, self.warehouse.nodes
        linked = len(nodes) > 1 if links is None else any(end == node for _, end in links)
        return HOP_US if linked else 0

    def align_us(self, name: str) -> int:
        """How long a record waits for the ends of all windows: for one after another if they do not nest."""
        steps = [self.warehouse.steps[above] for above in self.upstream[name]]
        windows_us = {step.align_us for step in steps if step.align_us is not None}
        longest_us = max(windows_us, default=0)
        nested = all(longest_us % window_us == 0 for window_us in windows_us)
        return longest_us if nested else sum(windows_us)


def least_distance_us(feed: Feed) -> int:
    """The least time between two files of a feed."""
    assert feed.period_us is not None, f"{feed.name} has files and no period"
    return feed.period_us - feed.jitter_us
