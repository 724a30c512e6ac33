"""Tables and queries whose updates and answers cost more, or less, than the plan assumes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from freshline.base.errors import InputError
from freshline.base.names import Names
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.queries.query_spec import QueryMeasure
from freshline.simulation.iterations import QueryWindows
from freshline.simulation.updates import UpdateCosts


def checked_factors(warehouse: Warehouse, slow: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """By table or query: what its costs are multiplied with."""
    for name, factor in slow.items():
        if name not in warehouse.stored and name not in warehouse.queries:
            known = Names("tables", [*warehouse.stored, *warehouse.queries])
            raise InputError(f"`{name}`, which is to be slow, does not exist", known.remedy(name))
        if factor <= 0:
            raise InputError(f"`{name}` is slow by the factor {factor}", "Give a factor above zero")
    return dict(slow)


class SlowedCosts:
    """A table's costs, multiplied; rounded down, at least 1 µs."""

    __slots__ = ("_denominator", "_draw_us", "_numerator")

    def __init__(self, costs: UpdateCosts, factor: Fraction) -> None:
        self._draw_us = costs.draw_us
        self._numerator = factor.numerator
        self._denominator = factor.denominator

    def draw_us(self, length_us: int) -> int:
        return self._draw_us(length_us) * self._numerator // self._denominator or 1


class SlowedWindows:
    """What a query reads, where answers cost so many times as much; rounded down, at least 1 µs."""

    __slots__ = ("_factor", "_windows")

    def __init__(self, windows: QueryWindows, factor: Fraction) -> None:
        self._windows = windows
        self._factor = factor

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        measure, factor = self._windows.measure(from_us, to_us), self._factor
        return measure._replace(
            cost_us=int(measure.cost_us * factor) or 1, fixed_us=int(measure.fixed_us * factor)
        )
