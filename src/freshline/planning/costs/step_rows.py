"""How many rows a step reads at once, and how often it runs for one burst (paper 002)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from freshline.definitions.sections.feeds import Feed
from freshline.definitions.warehouse import Warehouse


class StepRows(NamedTuple):
    """The most rows of one instance of a step, and the most instances for one file of each feed."""

    read: Fraction | None  # None if unknown
    instances: int


class _Clock(NamedTuple):
    """The instants up to which a step loads. Steps with the same key load up to the same instants."""

    key: tuple[str, ...]
    instances: int
    longest_us: int  # the longest range of an instance
    by_file: bool  # whether an instance has rows of one file only


def rows_of_steps(warehouse: Warehouse) -> dict[str, StepRows]:
    """By step: rows in are all that its inputs make, rows out are those times its selectivity.

    A step with inputs of several feeds loads up to the least fresh one. So a file of each feed can release it
    (docs/placement.md), and an instance can have rows of several files.
    """
    clocks: dict[str, _Clock] = {}
    made: dict[str, dict[str, Fraction | None]] = {}  # by step and feed: the most rows from one file
    found: dict[str, StepRows] = {}
    for name in warehouse.step_order:
        step = warehouse.steps[name]
        if step.feed is None:
            clock = _common(name, {clocks[source].key: clocks[source] for source in step.sources})
            clock = clock if step.align_us is None else _aligned(clock, step.align_us)
            rows = _added([made[source] for source in step.sources])
            read = _sum([_times(most, _files(warehouse.feeds[feed], clock)) for feed, most in rows.items()])
        else:  # all are read, and some are shed
            feed = warehouse.feeds[step.feed]
            longest_us = feed.next_file_us + feed.timestamp_jitter_us
            clock = _Clock((f"feed {feed.name}",), 1, longest_us, not feed.landing.lateness_us)
            rows, read = {feed.name: feed.rows_most_loaded}, feed.rows_most
        clocks[name] = clock
        made[name] = {of: _times(most, step.selectivity) for of, most in rows.items()}
        found[name] = StepRows(read, clock.instances)
    return found


def _common(name: str, inputs: Mapping[tuple[str, ...], _Clock]) -> _Clock:
    """The clock of a step that loads up to its least fresh input."""
    clocks = list(inputs.values())
    if len(clocks) == 1:
        return clocks[0]
    instances = sum(clock.instances for clock in clocks)
    return _Clock((name,), instances, max(clock.longest_us for clock in clocks), False)


def _aligned(clock: _Clock, window_us: int) -> _Clock:
    """The clock of a step that loads whole windows."""
    longest_us = -(-clock.longest_us // window_us) * window_us
    return clock._replace(key=(*clock.key, f"{window_us} us"), longest_us=longest_us, by_file=False)


def _files(feed: Feed, clock: _Clock) -> int:
    """How many files of a feed can have rows in one range.

    Their rows are no older than the feed's `age`, and the files come up to its jitter late.
    """
    assert feed.period_us is not None
    if clock.by_file:
        return 1
    return -(-(clock.longest_us + feed.oldest_us + feed.jitter_us) // feed.period_us)


def _added(inputs: list[dict[str, Fraction | None]]) -> dict[str, Fraction | None]:
    feeds = dict.fromkeys(feed for rows in inputs for feed in rows)
    return {feed: _sum([rows[feed] for rows in inputs if feed in rows]) for feed in feeds}


def _times(rows: Fraction | None, factor: Fraction | int) -> Fraction | None:
    return None if rows is None else rows * factor


def _sum(numbers: list[Fraction | None]) -> Fraction | None:
    known = [number for number in numbers if number is not None]
    return sum(known, Fraction(0)) if len(known) == len(numbers) else None
