"""Tables of figures on a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from rich.console import RenderableType
from rich.table import Table

Row = TypeVar("Row")
# By title: what a column shows of a row. A title with ">" in front is that of a right-aligned column.
Columns = Mapping[str, Callable[[Row], RenderableType]]


def screen_table(rows: Iterable[Row], columns: Columns[Row]) -> Table:
    """A table that cuts words instead of breaking them."""
    return fill(Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False), rows, columns)


def fill(table: Table, rows: Iterable[Row], columns: Columns[Row]) -> Table:
    """Adds the columns and the rows to an empty table, which is returned."""
    add_columns(table, columns)
    for row in rows:
        table.add_row(*(cell(row) for cell in columns.values()))
    return table


def add_columns(table: Table, titles: Iterable[str]) -> None:
    for title in titles:
        right = title.startswith(">")
        # Numbers are never cut; names are, the longest first. Names have no blanks, so they do not wrap.
        table.add_column(
            title.removeprefix(">"),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="ellipsis",
        )


def count(number: int) -> str:
    """A number of rows in at most five characters.

    >>> count(9_999), count(1_234_567)
    ('9999', '1.23M')
    """
    if number < 10_000:
        return str(number)
    for unit, size in (("k", 10**3), ("M", 10**6), ("G", 10**9)):
        if number < 999.5 * size:
            return f"{number / size:.3g}{unit}"
    return f"{number / 10**12:.3g}T"
