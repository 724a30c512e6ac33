"""Texts from outside, such as the names of files, as a terminal may show them."""

from __future__ import annotations

import re
from typing import Final

# Control characters, which a terminal obeys; what ends a line or turns its direction; halves of characters,
# which stand for bytes of a name that are no text.
_UNPRINTABLE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, but: str = "") -> str:
    r"""A text on one line that changes nothing but where it stands; of what it escapes, all `but` these.

    >>> print(printable("a\x1b[31m\n.csv"))
    a\x1b[31m\n.csv
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in but else _escaped(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
