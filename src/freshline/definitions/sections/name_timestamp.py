"""Timestamps in the names of data files."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from freshline.base.errors import InputError
from freshline.base.instants import epoch_us

_REMEDY: Final = "Write the files' whole name with strptime's directives, such as `packets-%Y%m%dT%H%M%S.csv`"

# No two of its parts are equal, and none is the one that strptime takes for a part that is missing.
_SAMPLE: Final = datetime(2031, 11, 23, 22, 47, 58, 123456, tzinfo=UTC)


def instant_in_name(pattern: str, name: str) -> int | None:
    """The instant that a file's name says, in microseconds since the Unix epoch; None where it says none.

    The pattern is that of the last part of the name, or of as many parts as it has itself.

    >>> instant_in_name("%Y/flows-%m%d.csv", "site/2024/flows-0102.csv")
    1704153600000000
    """
    parts = pattern.count("/") + 1
    try:
        return epoch_us(datetime.strptime("/".join(name.split("/")[-parts:]), pattern))
    except (ValueError, re.error):  # the latter where a directive comes twice
        return None


def check_pattern(pattern: str) -> str:
    """The pattern, if it tells an instant: the year, and then down to whatever part without a gap."""
    said = instant_in_name(pattern, _SAMPLE.strftime(pattern)) if "%" in pattern else None
    if said is None:
        raise InputError(f"{pattern!r} is no pattern of strptime", _REMEDY)
    truncated = datetime(_SAMPLE.year, 1, 1, tzinfo=UTC)
    for part in ("month", "day", "hour", "minute", "second", "microsecond"):
        if said == epoch_us(truncated):
            return pattern
        truncated = truncated.replace(**{part: getattr(_SAMPLE, part)})
    if said == epoch_us(truncated):
        return pattern
    raise InputError(f"{pattern!r} does not tell an instant", _REMEDY)
