"""`slices` of a table: how its rows are divided into slices."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from freshline.definitions.language.values import Entry, Given, Text
from freshline.sql.slices import Slices


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
