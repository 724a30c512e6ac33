"""Names in a section: which are valid, and which one a misspelt name probably means."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

NAME_PATTERN: Final = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_NAME: Final = re.compile(NAME_PATTERN.removesuffix("$"))
# A suggestion compares with every name, and a large file may have thousands of mistakes.
_SUGGESTIONS_MAX: Final = 20
_LISTED_MAX: Final = 10
_REPEATED_MAX: Final = 100


def is_name(text: str) -> bool:
    """Whether a pool, a feed or a table may have this name."""
    return _NAME.fullmatch(text) is not None


def cut(text: str) -> str:
    """A user's text as a message quotes it: a very long one is cut off."""
    return text if len(text) <= _REPEATED_MAX else f"{text[:_REPEATED_MAX]}…"


def one_of(names: Iterable[str]) -> str:
    """Names as a message lists them: `a`, `b` or `c`."""
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} or {last}" if most else last


def close_match(name: str, names: Iterable[str]) -> str | None:
    """The defined name that was probably meant, if one is close; ignores case."""
    by_folded = {other.lower(): other for other in names}
    matches = get_close_matches(name.lower(), by_folded, n=1)
    return by_folded[matches[0]] if matches else None


class Names:
    """The names that one section defines, in order of definition."""

    def __init__(self, section: str, names: Iterable[str]) -> None:
        self.section = section
        self.all = tuple(names)
        # Spark SQL ignores case.
        self._by_folded: dict[str, str] = {}
        for name in self.all:
            self._by_folded.setdefault(name.lower(), name)
        self._suggestions_left = _SUGGESTIONS_MAX

    def find(self, name: str) -> str | None:
        """The name as it is defined; ignores case."""
        return self._by_folded.get(name.lower())

    def has(self, name: str) -> bool:
        """Whether exactly this name is defined."""
        return self.find(name) == name

    def remedy(self, unknown: str) -> str:
        """What a user can do about a name that is not defined here."""
        if self._suggestions_left:
            self._suggestions_left -= 1
            match = close_match(unknown, self.all)
            if match:
                return f"Perhaps `{match}` is meant"
        if 0 < len(self.all) <= _LISTED_MAX:
            return f"Define it under `{self.section}`, or name {one_of(self.all)}"
        return f"Define it under `{self.section}`, or correct the name"
