"""Durations as people write them, kept as whole microseconds."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Final

from freshline.base.errors import InputError
from freshline.base.names import cut

MICROSECOND: Final = 1
MILLISECOND: Final = 1_000
SECOND: Final = 1_000_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY

_UNITS: Final[dict[str, int | Fraction]] = {
    **dict.fromkeys(("ns", "nanosecond", "nanoseconds"), Fraction(1, 1_000)),
    **dict.fromkeys(("us", "µs", "μs", "microsecond", "microseconds"), MICROSECOND),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), MILLISECOND),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), WEEK),
}
_PART: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Zµμ]+)\s*")
# Kernel time must fit in 64 bits with room to spare, because many durations are added up.
_LONGEST: Final = 100 * 366 * DAY

NUMBER_AND_UNIT: Final = "Write a number and a unit, such as '5 minutes' or '300s'"

DURATION_PATTERN: Final = r"^\s*([0-9]+(\.[0-9]+)?\s*[a-zA-Zµμ]+\s*)+$|^0$"


@lru_cache(maxsize=65_536)
def parse_duration(text: str) -> int:
    """The microseconds of a duration such as `5 minutes`, `300s`, `1h 30m` or `0.5 s`.

    >>> parse_duration("1h 30m")
    5400000000
    """
    total = parse_exact_duration(text)
    if total.denominator != 1:
        raise InputError(f"{cut(text)!r} is finer than a microsecond", "Round it to whole microseconds")
    return int(total)


def parse_exact_duration(text: str) -> Fraction:
    """The microseconds of a duration, as a fraction: the text may be finer than a microsecond.

    >>> parse_exact_duration("250ns")
    Fraction(1, 4)
    """
    if text.strip() == "0":
        return Fraction(0)
    total = Fraction(0)
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise InputError(f"{cut(text)!r} is not a duration", NUMBER_AND_UNIT)
        number, unit = part.groups()
        factor = _UNITS.get(unit) or _UNITS.get(unit.lower())
        if factor is None:
            raise InputError(
                f"{cut(text)!r} has the unknown unit {cut(unit)!r}",
                "Use us, ms, s, m, h, d or w, or their names",
            )
        total += Fraction(Decimal(number)) * factor
        position = part.end()
    if position == 0:
        raise InputError("the duration is empty", NUMBER_AND_UNIT)
    if total > _LONGEST:
        raise InputError(f"{cut(text)!r} is longer than a hundred years", "Give a shorter duration")
    return total


def seconds(microseconds: int | None) -> float | None:
    """Seconds, the unit of durations and instants in JSON."""
    return None if microseconds is None else microseconds / SECOND


def format_duration(microseconds: int | None, up: bool = False, down: bool = False) -> str:
    """A duration for people, with about three digits: `up` never rounds to less, `down` never to more.

    >>> format_duration(5_400_000_000)
    '1h 30m'
    """
    if microseconds is None:
        return "-"
    if microseconds < 0:
        return "-" + format_duration(-microseconds)
    grain = _grain(microseconds)
    rest = (microseconds + (grain - 1 if up else 0 if down else grain // 2)) // grain * grain
    if rest < MINUTE:
        return _decimal(rest)
    parts = []
    for name, unit in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND)):
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count}{name}")
    return " ".join(parts)


def _grain(microseconds: int) -> int:
    for limit, grain in ((2 * DAY, HOUR), (2 * HOUR, MINUTE), (MINUTE, SECOND), (10 * SECOND, 100_000)):
        if microseconds >= limit:
            return grain
    for limit in (SECOND, 100_000, 10_000, MILLISECOND):
        if microseconds >= limit:
            return limit // 100
    return 1


def _decimal(microseconds: int) -> str:
    for unit, name in ((SECOND, "s"), (MILLISECOND, "ms")):
        if microseconds >= unit:
            return f"{microseconds / unit:g}{name}"
    return f"{microseconds}µs" if microseconds else "0s"
