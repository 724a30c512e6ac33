"""Slices of a table: what a query may read a part of instead of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

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
