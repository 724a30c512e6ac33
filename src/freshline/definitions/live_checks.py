"""Checks for what can be planned and simulated but cannot run on data."""

from __future__ import annotations

from freshline.base.errors import DefinitionErrors
from freshline.definitions.language.section import LiveCheck
from freshline.definitions.warehouse import SECTIONS, Warehouse


def check_runnable(warehouse: Warehouse) -> None:
    """Raises `DefinitionErrors` if the warehouse cannot run, or would not hold what its SQL says."""
    check = LiveCheck(warehouse)
    for section in SECTIONS.values():
        section.check_live(check)
    if check.errors:
        raise DefinitionErrors(check.errors)
