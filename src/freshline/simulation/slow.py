"""Tables whose updates cost more, or less, than the plan assumes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from freshline.definitions.errors import InputError
from freshline.definitions.names import Names
from freshline.definitions.warehouse import Warehouse
from freshline.simulation.updates import UpdateCosts


def checked_factors(warehouse: Warehouse, slow: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """By table: what its costs are multiplied with."""
    for name, factor in slow.items():
        if name not in warehouse.tables:
            raise InputError(
                f"the slow table `{name}` does not exist", Names("tables", warehouse.tables).remedy(name)
            )
        if factor <= 0:
            raise InputError(f"the table `{name}` is slow by the factor {factor}", "Give a factor above zero")
    return dict(slow)


class Slowed:
    """A table's costs, multiplied; rounded down, at least 1 µs."""

    __slots__ = ("_denominator", "_draw_us", "_numerator")

    def __init__(self, costs: UpdateCosts, factor: Fraction) -> None:
        self._draw_us = costs.draw_us
        self._numerator = factor.numerator
        self._denominator = factor.denominator

    def draw_us(self, length_us: int) -> int:
        return self._draw_us(length_us) * self._numerator // self._denominator or 1
