"""The errors that a user reads when the input is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the user's file; line 0 means the file as a whole."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


NOWHERE: Final = Place("<memory>", 0)


class InputError(ValueError):
    """Bad input: what is wrong, where, and what to do about it. The command exits with code 2."""

    def __init__(self, what: str, remedy: str, place: Place | None = None) -> None:
        self.what = what
        self.remedy = remedy
        self.place = place
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.what}. {self.remedy}."


class DefinitionErrors(InputError):  # noqa: N818  (it holds several errors)
    """Several errors of one file, reported together so that the user can correct them in one edit."""

    def __init__(self, errors: list[InputError]) -> None:
        assert errors, "an error report without errors"
        # In the order of the file, because users correct it from top to bottom.
        self.errors = sorted(errors, key=lambda error: error.place.line if error.place else 0)
        first = self.errors[0]
        super().__init__(first.what, first.remedy, first.place)

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


def about(path: Sequence[str | int], what: str) -> str:
    """A sentence about a key path: `tables.traffic.period: it is empty`. It leaves out positions in lists."""
    return f"{'.'.join(step for step in path if isinstance(step, str))}: {what}" if path else what
