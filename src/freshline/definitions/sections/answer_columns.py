"""The columns that a table of answers (`into`) has besides those of the answers."""

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
    """The names of the columns for the two ends of an estimate's interval."""
    return f"_{column}_low", f"_{column}_high"


def check_answer_columns(columns: Iterable[str], estimated: Sequence[str]) -> None:
    """Raises InputError if an answer has a column with the name of one of these columns.

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
