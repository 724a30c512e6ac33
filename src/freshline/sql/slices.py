"""Slices of a table: a query may read some of them instead of the whole table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

SLICES: Final = 256  # the slices of a table, numbered from 0
# The number for rows that are in no slice and that every query reads: the outliers of a table.
NO_SLICE: Final = -1
OUTLIERS: Final = Fraction(3, 100)  # the largest share of outliers among the rows of an update


@dataclass(frozen=True, slots=True)
class Slices:
    """Every row of the table is in one slice: by the hash of a column, or at random."""

    by: str | None = None  # the column; tables that are joined by it can be read slice by slice
    outliers: str | None = None  # a column: the rows with its largest values are outliers, in no slice

    def in_words(self) -> str:
        """
        >>> Slices("src").in_words()
        'by src'
        >>> Slices(outliers="bytes").in_words()
        'by chance, outliers by bytes'
        """
        dealt = "by chance" if self.by is None else f"by {self.by.lower()}"
        return dealt if self.outliers is None else f"{dealt}, outliers by {self.outliers.lower()}"
