"""Tables of figures on a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table


def columns(names: Mapping[str, bool]) -> Table:
    """An empty table that cuts words instead of breaking them; True: a right-aligned column."""
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False)
    for name, right in names.items():
        # Numbers are never cut; names are, the longest first. Names have no blanks, so they do not wrap.
        table.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="ellipsis")
    return table


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
