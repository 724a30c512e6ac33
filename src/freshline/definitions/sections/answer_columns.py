"""The columns that a table of answers (`into`) has beside those of the answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from freshline.base.errors import InputError

WINDOW_TO: Final = "_window_to"
OF_ANSWERS: Final = (
    "_window_from",
    WINDOW_TO,
    "_released",
    "_deadline",
    "_finished",
    "_keep",
    "_rows_seen",
)


def interval_names(column: str) -> tuple[str, str]:
    """Those of the ends of the interval that an estimate is in."""
    return f"_{column}_low", f"_{column}_high"


def check_answer_columns(columns: Iterable[str], estimated: Sequence[str]) -> None:
    """Raises InputError where an answer has a column that its table has itself.

    >>> check_answer_columns(["src", "n"], ["n"])
    """
    more = [*OF_ANSWERS, *(name for column in estimated for name in interval_names(column))]
    taken = {name.lower() for name in more}
    for name in columns:
        if name.lower() in taken:
            raise InputError(
                f"its column `{name}` is one that a table of answers has itself",
                "Give it another name with AS",
            )
