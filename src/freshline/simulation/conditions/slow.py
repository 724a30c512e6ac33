"""Work that costs more, or less, than the plan assumes."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from freshline.base.errors import InputError
from freshline.base.names import Names
from freshline.definitions.warehouse import Warehouse
from freshline.simulation.kinds import KINDS


def checked_factors(warehouse: Warehouse, slow: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """By table, query or class: the factor on its costs."""
    names = [name for kind in KINDS for name in kind.can_be_slow(warehouse)]
    for name, factor in slow.items():
        if name not in names:
            known = Names("tables", names)
            raise InputError(f"`{name}`, which is to be slow, does not exist", known.remedy(name))
        if factor <= 0:
            raise InputError(f"`{name}` is slow by the factor {factor}", "Give a factor above zero")
    return dict(slow)
