"""`slices` of a table: how its rows are divided into slices."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from freshline.definitions.language.values import Entry, Given, Text
from freshline.sql.slices import Slices


class SlicesEntry(Entry):
    """How the rows of a table are divided into slices."""

    model_config = ConfigDict(title="Slices")

    by: Given[Text] = Field(
        None,
        description="The column that decides the slice: equal values are in equal slices. Tables can be read "
        "slice by slice together if their `by` columns join them (default: at random).",
    )

    outliers: Given[Text] = Field(
        None,
        description="A column of numbers. The 3 % of an update's rows with its largest absolute values are "
        "in no slice, and every query reads all of them. That improves estimates of sums that a few large "
        "values dominate (base tables only; default: none).",
    )

    def resolved(self) -> Slices:
        return Slices(self.by, self.outliers)
