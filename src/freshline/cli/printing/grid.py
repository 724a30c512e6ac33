"""Tables and lines that commands print."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from freshline.live.status.screen_table import Columns, Row, add_columns, fill

# The number of rows that a table on the screen has; rows with problems come first, the rest is counted.
ROWS_MAX = 40


class Grid(Table):
    """A table whose rows begin with a name. Names are shown as they are; brackets are not markup."""

    def add_row(
        self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False
    ) -> None:
        name, *rest = cells
        super().add_row(
            Text(name) if isinstance(name, str) else name, *rest, style=style, end_section=end_section
        )


def grid(title: str, *columns: str) -> Grid:
    """An empty table; a column with ">" in front of its title is right-aligned.

    On a narrow screen the longest names are cut; numbers and verdicts stay.
    """
    table = Grid(title=Text(title, "bold"), title_justify="left", header_style="bold", box=None)
    add_columns(table, columns)
    return table


def show_rows(
    screen: Console,
    title: str,
    rows: Sequence[Row],
    all_rows: bool,
    columns: Columns[Row],
    urgency: Callable[[Row], Any] = lambda row: 0,
) -> None:
    """Prints all rows, or as many as fit, the most urgent first, and how many are left out."""
    is_long = not all_rows and len(rows) > ROWS_MAX
    shown = sorted(rows, key=urgency)[:ROWS_MAX] if is_long else rows
    screen.print(fill(grid(title), shown, columns))
    if is_long:
        screen.print(f"... and {len(rows) - ROWS_MAX} more: --all shows every one, --json too.", style="dim")


def show_learned(screen: Console, what: str, counts: Sequence[int]) -> None:
    """Prints from how many runs the costs with a star were learned; a count of 0 means not learned."""
    learned = [count for count in counts if count]
    if learned:
        fewest, most = min(learned), max(learned)
        number = f"{most}" if fewest == most else f"{fewest} to {most}"
        note(screen, f"* learned from {number} {what}")


def note(screen: Console, sentence: str) -> None:
    """Prints a sentence beside the figures."""
    screen.print(sentence, style="dim", highlight=False, markup=False)


def tell(screen: Console, sentence: str) -> None:
    """Prints a sentence as it is: brackets are not markup."""
    screen.print(sentence, highlight=False, markup=False)


def listed(names: Sequence[str], most: int = 6) -> str:
    """The first names, and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
