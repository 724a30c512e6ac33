"""Makes texts from outside, such as file names, safe to show on a terminal."""

from __future__ import annotations

import re
from typing import Final

# Control characters, line ends, marks that change the writing direction, and surrogates, which stand for
# bytes of a name that are not valid text.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, but: str = "") -> str:
    r"""The text on one line; escapes what a terminal would obey, except the characters of `but`.

    >>> print(printable("a\x1b[31m\n.csv"))
    a\x1b[31m\n.csv
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in but else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
