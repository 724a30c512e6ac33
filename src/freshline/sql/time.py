"""What is known about a time that a query computes: the window of its row, and the offset from it.

All of it is exact. A value that is not known here is not a time; a query that relies on it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import lcm
from typing import Final


class TimeForm(Enum):
    """The form in which a query has a time."""

    INSTANT = "a timestamp or a date"
    WINDOW = "a window with its start and end"
    NUMBER = "a whole number of units"
    FRACTION = "a number of units that may be rounded: of use only to be made whole"
    TEXT = "a text of whole seconds"


@dataclass(frozen=True, slots=True)
class Time:
    """A value in a query's row: the start of the row's window plus `low_us` to `high_us`.

    Windows begin at multiples of their length since 1970. Rows are made after 1970, so times are positive.
    The row's own timestamp is in a window of one microsecond, with an offset of zero.
    """

    covers: frozenset[str] = frozenset()  # the relations of a FROM whose newest time it is
    step_us: int = 1  # the length of the window
    low_us: int = 0
    high_us: int = 0
    form: TimeForm = TimeForm.INSTANT
    unit_us: int = 1  # the unit of a number, or the length of a window with start and end

    @property
    def is_exact(self) -> bool:
        """Whether it is the row's own timestamp."""
        return self.is_own and self.step_us == 1

    @property
    def is_own(self) -> bool:
        """Whether it lies in the row's window: an update that ends at a window's edge has both or neither."""
        return self.low_us >= 0 and self.high_us < self.step_us

    @property
    def tells_apart(self) -> bool:
        """Whether rows with the same value are in the same window."""
        return self.high_us - self.low_us < self.step_us

    def shifted(self, by_us: int) -> Time:
        return replace(self, low_us=self.low_us + by_us, high_us=self.high_us + by_us)

    def floored(self, width_us: int) -> Time:
        """The time rounded down to a multiple of a width."""
        if self.step_us % width_us == 0:
            low_us, high_us = (each // width_us * width_us for each in (self.low_us, self.high_us))
            return replace(self, low_us=low_us, high_us=high_us)
        whole_us = self.low_us // width_us * width_us
        if width_us % self.step_us == 0 and self.high_us - whole_us < self.step_us:
            return replace(self, step_us=width_us, low_us=whole_us, high_us=whole_us)
        return replace(self, low_us=self.low_us - (width_us - 1))

    def truncated(self, width_us: int) -> Time:
        """The time rounded towards zero to a multiple of a width: rounded down unless it may be negative."""
        if self.low_us >= 0:
            return self.floored(width_us)
        spread_us = width_us - 1
        return replace(self, low_us=self.low_us - spread_us, high_us=self.high_us + spread_us)

    def coarsened(self, step_us: int) -> Time:
        """The same value if only the longer window of the row is known."""
        longer_us = lcm(self.step_us, step_us)
        return replace(self, step_us=longer_us, high_us=self.high_us + longer_us - self.step_us)

    def is_like(self, other: Time) -> bool:
        """Whether two values can be compared."""
        return (self.form, self.unit_us) == (other.form, other.unit_us)

    def is_same(self, other: Time) -> bool:
        return replace(self, covers=other.covers) == other


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation of a FROM, or the result of a query; names are in lower case."""

    names: tuple[str, ...] | None  # its columns; None if some are unknown
    times: Mapping[str, Time]  # the columns that are times
    reads: bool = True  # whether it reads tables
    step_us: int = 1  # the length of windows at whose edges its rows are final
    reach_us: int | None = 0  # how far before its window a row's inputs may lie; None if unknown

    def time_at(self, position: int) -> Time | None:
        """The time of the column at this position."""
        assert self.names is not None
        name = self.names[position]
        return self.times.get(name) if self.names.count(name) == 1 else None

    def coarsened(self, step_us: int) -> Relation:
        """The same rows, final at the edges of longer windows."""
        longer_us = lcm(self.step_us, step_us)
        times = {name: time.coarsened(longer_us) for name, time in self.times.items()}
        return replace(self, times=times, step_us=longer_us)


CONSTANT: Final = Relation(None, {}, reads=False)


def own_time(column: str | None) -> dict[str, Time]:
    """The times of a relation if only its timestamp column is known, or nothing."""
    return {} if column is None else {column.lower(): Time()}


def newest(times: Iterable[Time]) -> Time | None:
    """The greatest of several times, each in its row's window; None if nothing is known about it."""
    first, *others = times
    covers = first.covers.union(*(other.covers for other in others))
    if not all(time.is_own and time.is_like(first) for time in (first, *others)):
        return None
    if all(other.is_same(first) for other in others):
        return replace(first, covers=covers)
    return replace(in_common([first, *others]), covers=covers)


def in_common(times: Iterable[Time]) -> Time:
    """What is known about a value that is one of several times, each in its row's window."""
    first, *others = times
    if all(other.is_same(first) for other in others):
        return first
    step_us = lcm(first.step_us, *(other.step_us for other in others))
    return replace(first, step_us=step_us, low_us=0, high_us=step_us - 1)


def longest(reaches_us: Iterable[int | None]) -> int | None:
    """The longest reach; None if one of them is unknown."""
    known = [*reaches_us]
    return None if None in known else max((each for each in known if each is not None), default=0)
