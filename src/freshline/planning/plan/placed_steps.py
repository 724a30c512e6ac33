"""A warehouse's steps as operators to place: their costs, and what is left of their deadlines."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from freshline.base.duration import SECOND
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.step_rows import rows_of_steps
from freshline.planning.placement.plan import (
    Operator,
    PlacementNode,
    PlacementOutput,
    PlacementPlan,
    StreamSource,
)
from freshline.planning.plan.step_graph import StepGraph


class PlacedSteps(StepGraph):
    """The steps of a warehouse, all of known cost, with figures from their places in the graph."""

    def __init__(self, warehouse: Warehouse) -> None:
        super().__init__(warehouse)
        self.costs_us: dict[str, int] = {}  # by step: worst case of an instance, on a node of speed 1
        self.instances: dict[str, int] = {}  # by step: how often it may run for one burst of its feeds
        rows = rows_of_steps(warehouse)
        for name in warehouse.step_order:
            step = warehouse.steps[name]
            assert step.cost is not None, f"the cost of {name} is unknown"
            cost = step.cost
            worst = (1 + cost.variability) * (cost.startup_us + cost.per_row_us * (rows[name].read or 0))
            self.costs_us[name] = max(1, -(-worst.numerator // worst.denominator))
            self.instances[name] = rows[name].instances

    def burst_us(self, step: str) -> int:
        """What a step costs at worst for one burst of its feeds, on a node of speed 1."""
        return self.instances[step] * self.costs_us[step]

    def longest_us(self, node: str) -> int:
        """The longest time of a step that may run there: others may have to wait that long."""
        steps = self.warehouse.steps
        allowed = [name for name in steps if node in self.warehouse.nodes_of(name)]
        speed = self.warehouse.nodes[node].speed
        return max((on_node_us(self.costs_us[name], speed) for name in allowed), default=0)

    def blocking_us(self, node: str) -> int:
        return self.longest_us(node) + self.hop_us(node)

    def left_us(self, output: str) -> int:
        """What is left of an output's deadline when its records can be computed; it may be below 0.

        A record has the age of its feed when it is found. Then it waits until all inputs are as fresh, which
        may take the slowest feed's next file, and for the end of its window.
        """
        feeds = self.feeds_of(output)
        deadline_us = self.warehouse.steps[output].deadline_us
        assert deadline_us is not None
        age_us = max(feed.oldest_us for feed in feeds)
        lateness_us = max(feed.landing.lateness_us for feed in feeds)
        align_us = self.align_us(output)
        left_us = deadline_us - age_us - lateness_us - align_us
        next_file_us = max(feed.next_file_us for feed in feeds)
        if lateness_us or len(feeds) > 1:
            return left_us - next_file_us
        # The first file with a newer record shows that a window is over. The file before it came at most
        # `timestamp_jitter` after the window's end.
        shown_us = max(feed.timestamp_jitter_us + feed.next_file_us for feed in feeds)
        return left_us - (max(0, shown_us - age_us) if align_us else 0)

    def ages_us(self, output: str) -> dict[str, int]:
        """By feed upstream of an output: how old its oldest record may be when its file is found."""
        return {
            name: feed.oldest_us for name, feed in self.warehouse.feeds.items() if name in self.feeds[output]
        }


def on_node_us(cost_us: int, speed: Fraction) -> int:
    """A cost on a node of that speed, rounded up."""
    return -(-cost_us * speed.denominator // speed.numerator)


def unknown_costs(warehouse: Warehouse) -> tuple[str, ...]:
    """The steps of unknown cost: without a cost, or with a cost per row and an unknown number of rows."""
    rows = rows_of_steps(warehouse)
    return tuple(
        name
        for name, step in warehouse.steps.items()
        if step.cost is None or (step.cost.per_row_us and rows[name].read is None)
    )


def why_unknown(warehouse: Warehouse, unknown: Iterable[str]) -> str:
    """What is unknown about these steps, and a remedy."""
    steps, feeds = warehouse.steps, warehouse.feeds
    without = [name for name in unknown if steps[name].cost is None]
    by_rows = [name for name in unknown if steps[name].cost is not None]
    said = [f"no cost is known for {', '.join(without)} (run it, or declare `cost`)"] if without else []
    if by_rows:
        used = dict.fromkeys(step.feed for step in steps.values() if step.feed is not None)
        unsized = ", ".join(name for name in used if feeds[name].rows_most is None)
        rows = f"the number of rows is unknown for {', '.join(by_rows)}"
        said.append(f"{rows} (declare `burst`, or `rows`, of {unsized})")
    return "; ".join(said)


def placement_plan(steps: PlacedSteps) -> PlacementPlan:
    """The plan to place. An output with no time left gets the sum of its costs as deadline."""
    warehouse = steps.warehouse
    operators = tuple(
        Operator(
            name,
            step.sources if step.feed is None else (_stream(step.feed),),
            (name,),
            _seconds(steps.burst_us(name)),
            step.nodes,
            step.selectivity,
        )
        for name, step in warehouse.steps.items()
    )
    outputs = tuple(
        PlacementOutput(
            name, _seconds(left_us if (left_us := steps.left_us(name)) > 0 else _own_us(steps, name))
        )
        for name, step in warehouse.steps.items()
        if step.deadline_us is not None
    )
    nodes = tuple(
        PlacementNode(name, node.speed, _seconds(steps.blocking_us(name)))
        for name, node in warehouse.nodes.items()
    )
    return PlacementPlan(nodes, tuple(_sources(warehouse)), operators, outputs, warehouse.links)


def _sources(warehouse: Warehouse) -> Iterable[StreamSource]:
    loaded = {step.feed for step in warehouse.steps.values()}
    for name, feed in warehouse.feeds.items():
        if name in loaded:
            assert feed.node is not None, f"the node of feed {name} is unknown"
            rows = feed.rows_most_loaded or Fraction(1)
            yield StreamSource(_stream(name), feed.node, rows * SECOND / _period_us(feed))


def _own_us(steps: PlacedSteps, output: str) -> int:
    return sum(steps.burst_us(name) for name in steps.upstream[output])


def _stream(feed: str) -> str:
    return f"feed {feed}"  # a table may have the name of its feed


def _seconds(microseconds: int) -> Fraction:
    return Fraction(microseconds, SECOND)


def _period_us(feed: Feed) -> int:
    assert feed.period_us is not None, f"{feed.name} has files and no period"
    return feed.period_us
