"""How many rows a step reads with a burst, and how many it makes (paper 002)."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from freshline.definitions.warehouse import Warehouse


class StepRows(NamedTuple):
    """The most rows of one instance; None if unknown."""

    read: Fraction | None
    made: Fraction | None


def rows_of_steps(warehouse: Warehouse) -> dict[str, StepRows]:
    """By step: rows in are all that its inputs make, rows out are those times its selectivity."""
    found: dict[str, StepRows] = {}
    for name in warehouse.step_order:
        step = warehouse.steps[name]
        if step.feed is None:
            read = kept = _sum([found[source].made for source in step.sources])
        else:  # all are read, and some are shed
            feed = warehouse.feeds[step.feed]
            read, kept = feed.rows_most, feed.rows_most_loaded
        found[name] = StepRows(read, None if kept is None else kept * step.selectivity)
    return found


def _sum(numbers: list[Fraction | None]) -> Fraction | None:
    known = [number for number in numbers if number is not None]
    return sum(known, Fraction(0)) if len(known) == len(numbers) else None
