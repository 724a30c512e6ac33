"""Slices of a table: what a query may read a part of instead of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from pydantic import ConfigDict, Field

from freshline.definitions.values import Entry, Given, Text

SLICES: Final = 256  # that a table has, numbered from 0
# Of rows that are in no slice, and that every query reads whole: a table's outliers.
NO_SLICE: Final = -1
OUTLIERS: Final = Fraction(3, 100)  # that share of each update's rows, at most


@dataclass(frozen=True, slots=True)
class Slices:
    """Every row of the table is in one of its slices: by the hash of a column, or by chance."""

    by: str | None = None  # the column; tables that are joined by it can be read slice by slice
    outliers: str | None = None  # a column: the rows with its largest values are in no slice

    def in_words(self) -> str:
        """
        >>> Slices("src").in_words()
        'by src'
        >>> Slices(outliers="bytes").in_words()
        'by chance, outliers by bytes'
        """
        dealt = "by chance" if self.by is None else f"by {self.by.lower()}"
        return dealt if self.outliers is None else f"{dealt}, outliers by {self.outliers.lower()}"


class SlicesEntry(Entry):
    """How a table's rows are dealt into slices."""

    model_config = ConfigDict(title="Slices")

    by: Given[Text] = Field(
        None,
        description="The column by which rows are dealt: equal values are in equal slices, also of another "
        "table that is dealt by what it is joined with (default: by chance).",
    )

    outliers: Given[Text] = Field(
        None,
        description="A column of numbers: the 3 % of each update's rows that are largest in it, whatever "
        "their sign, are in no slice, and every query reads them whole. So sums of what is mostly in a few "
        "large values are estimated well (base tables only; default: none).",
    )

    def resolved(self) -> Slices:
        return Slices(self.by, self.outliers)
