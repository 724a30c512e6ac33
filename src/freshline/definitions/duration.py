"""Durations as people write them, kept as whole microseconds."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

MICROSECOND: Final = 1
MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY

_UNITS: Final = {
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), MICROSECOND),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), MILLISECOND),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), WEEK),
}
_PART: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Zµμ]+)\s*")
# Kernel time must fit comfortably in 64 bits, sums of many durations included.
_LONGEST: Final = 100 * 366 * DAY

DURATION_PATTERN: Final = r"^\s*(\d+(\.\d+)?\s*[a-zA-Zµμ]+\s*)+$|^0$"


@lru_cache(maxsize=65_536)
def parse_duration(text: str) -> int:
    """The microseconds of a duration such as `5 minutes`, `300s`, `1h 30m` or `0.5 s`.

    >>> parse_duration("1h 30m")
    5400000000
    """
    if text.strip() == "0":
        return 0
    total = Fraction(0)
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise ValueError(f"{text!r} is not a duration: write a number and a unit, such as '5 minutes' or '300s'")
        number, unit = part.groups()
        factor = _UNITS.get(unit) or _UNITS.get(unit.lower())
        if factor is None:
            raise ValueError(f"{text!r} has the unknown unit {unit!r}: use us, ms, s, m, h, d or w, or their names")
        total += Fraction(Decimal(number)) * factor
        position = part.end()
    if position == 0:
        raise ValueError("an empty duration: write a number and a unit, such as '5 minutes' or '300s'")
    if total.denominator != 1:
        raise ValueError(f"{text!r} is finer than a microsecond: round it to whole microseconds")
    if total > _LONGEST:
        raise ValueError(f"{text!r} is longer than a hundred years: give a shorter duration")
    return int(total)


def format_duration(microseconds: int | None) -> str:
    """A duration in the two largest units that say it, for people to read.

    >>> format_duration(5_400_000_000)
    '1h 30m'
    """
    if microseconds is None:
        return "-"
    if microseconds < 0:
        return "-" + format_duration(-microseconds)
    if microseconds < MINUTE:
        return _short(microseconds)
    # Minutes and up are shown in whole seconds, rounded to the nearest.
    seconds = (microseconds + SECOND // 2) // SECOND * SECOND
    parts = []
    for name, unit in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND)):
        count, seconds = divmod(seconds, unit)
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts[:2])


def _short(microseconds: int) -> str:
    if microseconds >= SECOND:
        return f"{microseconds / SECOND:.3g}s" if microseconds < 59_950_000 else "60s"
    if microseconds >= MILLISECOND:
        return f"{microseconds / MILLISECOND:.3g}ms"
    return f"{microseconds}µs" if microseconds else "0s"
