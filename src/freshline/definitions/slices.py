"""Slices of a table: what a query may read a part of instead of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pydantic import ConfigDict, Field

from freshline.definitions.values import Entry, Given, Text

SLICES: Final = 256  # that a table has, numbered from 0


@dataclass(frozen=True, slots=True)
class Slices:
    """Every row of the table is in one of its slices: by the hash of a column, or by chance."""

    by: str | None = None  # the column; tables that are joined by it can be read slice by slice

    def in_words(self) -> str:
        """
        >>> Slices("src").in_words()
        'by src'
        """
        return "by chance" if self.by is None else f"by {self.by.lower()}"


class SlicesEntry(Entry):
    """How a table's rows are dealt into slices."""

    model_config = ConfigDict(title="Slices")

    by: Given[Text] = Field(
        None,
        description="The column by which rows are dealt: equal values are in equal slices, also of another "
        "table that is dealt by what it is joined with (default: by chance).",
    )

    def resolved(self) -> Slices:
        return Slices(self.by)
