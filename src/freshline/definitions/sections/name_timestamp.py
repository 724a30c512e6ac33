"""Timestamps in the names of data files."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from freshline.base.errors import InputError
from freshline.base.instants import epoch_us

_REMEDY: Final = "Write the files' whole name with strptime's directives, such as `packets-%Y%m%dT%H%M%S.csv`"

# All its parts differ from each other, and from the values that strptime assumes for missing parts.
_SAMPLE: Final = datetime(2031, 11, 23, 22, 47, 58, 123456, tzinfo=UTC)


def instant_in_name(pattern: str, name: str) -> int | None:
    """The instant in a file's name, in microseconds since the Unix epoch; None if the name has none.

    The pattern applies to the last part of the path, or to as many parts as the pattern has.

    >>> instant_in_name("%Y/flows-%m%d.csv", "site/2024/flows-0102.csv")
    1704153600000000
    """
    parts = pattern.count("/") + 1
    try:
        return epoch_us(datetime.strptime("/".join(name.split("/")[-parts:]), pattern))
    except (ValueError, re.error):  # re.error if a directive is repeated
        return None


def check_pattern(pattern: str) -> str:
    """Returns the pattern if it determines an instant: the year, and smaller units without a gap."""
    said = instant_in_name(pattern, _SAMPLE.strftime(pattern)) if "%" in pattern else None
    if said is None:
        raise InputError(f"{pattern!r} is not a strptime pattern", _REMEDY)
    truncated = datetime(_SAMPLE.year, 1, 1, tzinfo=UTC)
    for part in ("month", "day", "hour", "minute", "second", "microsecond"):
        if said == epoch_us(truncated):
            return pattern
        truncated = truncated.replace(**{part: getattr(_SAMPLE, part)})
    if said == epoch_us(truncated):
        return pattern
    raise InputError(f"{pattern!r} does not determine an instant", _REMEDY)
