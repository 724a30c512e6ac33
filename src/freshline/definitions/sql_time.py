"""What an expression of a query says about time: the rows' own timestamps, windows of them, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from freshline.definitions.duration import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND, parse_duration
from freshline.definitions.errors import InputError

# Their windows begin where whole multiples of their length since 1970 end; those of weeks and months do not.
_UNITS: Final = {
    "MICROSECOND": MICROSECOND,
    "MILLISECOND": MILLISECOND,
    "SECOND": SECOND,
    "MINUTE": MINUTE,
    "HOUR": HOUR,
    "DAY": DAY,
    "DD": DAY,
}
# What keeps the order of time, so that a function of it can put rows into windows.
_IN_ORDER: Final = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Floor, exp.Ceil, exp.Round, exp.Cast, exp.TryCast,
    exp.Greatest, exp.Least, exp.Coalesce, exp.Max, exp.Min, exp.StrToUnix, exp.UnixToTime, exp.TimeToUnix,
    exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds, exp.TimeStrToTime, exp.TsOrDsToTimestamp,
    exp.StrToTime, exp.UnixToStr,
)  # fmt: skip
_IN_ORDER_NAMES: Final = frozenset(
    {"TIMESTAMP_SECONDS", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS", "TO_UNIX_TIMESTAMP", "TRY_TO_TIMESTAMP"}
)
_SHIFTS: Final = (exp.TimestampAdd, exp.DateAdd, exp.DateSub, exp.TsOrDsAdd, exp.TimestampSub)
_TIMESTAMPS: Final = frozenset(
    {exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ}
)
_DATES: Final = (exp.TsOrDsToDate, exp.Date)


@dataclass(frozen=True, slots=True)
class Time:
    """What a column or an expression says about when its row was made."""

    covers: frozenset[str] = frozenset()  # the relations of a FROM whose timestamps it follows
    window_us: int | None = 0  # 0: the timestamp itself; else the length of its window, None if unknown
    is_window: bool = False  # a window with its start and end, not an instant
    shift_us: int | None = 0  # so much later than the rows, None if unknown; then it is not their timestamp

    @property
    def shifted(self) -> bool:
        return self.shift_us != 0


@dataclass(frozen=True, slots=True)
class Relation:
    """What stands in a FROM, or comes out of a query; names are in lower case."""

    names: tuple[str, ...] | None  # its columns; None where some are not known
    times: Mapping[str, Time]  # the columns that say something about time
    reads: bool = True  # whether it reads tables
    reach_us: int = 0  # what its rows are made of may lie so far back, and further where that is not known


NOT_KNOWN: Final = Relation(None, {}, reads=False)


class Scope:
    """The relations of one SELECT, and what its expressions say about time."""

    def __init__(self, relations: dict[str, Relation]) -> None:
        self.relations = relations
        self.window: Time | None = None  # what `window` means where the SELECT groups by one
        self.refused: list[str] = []  # windows that no table can be kept up to date in

    def time(self, node: exp.Expr) -> Time | None:
        """What an expression says about time; None for nothing that can be relied on."""
        node = node.unnest().unalias().unnest()
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Dot):
            return _field(self.time(node.this), node.expression.name)
        if isinstance(node, exp.Anonymous):
            return self._named(node)
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return self._truncated(node)
        cast_to = node.to.this if isinstance(node, exp.Cast) else None
        if cast_to in _TIMESTAMPS:
            return self.time(node.this)
        if cast_to == exp.DataType.Type.DATE or isinstance(node, _DATES):
            time = self.time(node.this)
            return time and _windowed(time, DAY)
        if isinstance(node, _SHIFTS):
            return _shifted(self.time(node.this), None)
        return self._function(node) if isinstance(node, _IN_ORDER) else None

    def difference(self, node: exp.Expr) -> tuple[Time, Time] | None:
        """The two timestamps of which an expression is the difference."""
        node = node.unnest()
        if not isinstance(node, exp.Sub):
            return None
        left, right = self.time(node.this), self.time(node.expression)
        return (left, right) if left and right else None

    def _column(self, node: exp.Column) -> Time | None:
        name, table = node.name.lower(), node.table.lower()
        if table in self.relations:
            time = self.relations[table].times.get(name)
            return time and replace(time, covers=frozenset({table}))
        if table:  # a field of a column
            return _field(self._unqualified(table), name)
        return self._unqualified(name)

    def _unqualified(self, name: str) -> Time | None:
        owners = [alias for alias, relation in self.relations.items() if name in relation.times]
        if owners:
            return replace(self.relations[owners[0]].times[name], covers=frozenset(owners))
        return self.window if name == "window" else None

    def _named(self, node: exp.Anonymous) -> Time | None:
        name = node.name.upper()
        arguments = node.expressions
        time = self.time(arguments[0]) if arguments else None
        if time is None:
            return None
        if name == "WINDOW":
            if len(arguments) != 2:
                self._refuse("windows that overlap, or begin at an offset")
            return replace(_windowed(time, _length_us(arguments[-1])), is_window=True)
        if name == "SESSION_WINDOW":
            self._refuse("sessions, which have no fixed edges")
            return replace(time, window_us=None, is_window=True)
        if name == "WINDOW_TIME":
            return replace(time, is_window=False)
        return replace(time, window_us=None) if name in _IN_ORDER_NAMES else None

    def _truncated(self, node: exp.TimestampTrunc | exp.DateTrunc) -> Time | None:
        time = self.time(node.this)
        length_us = _UNITS.get(node.unit.name.upper()) if node.unit else None
        if time is None:
            return None
        if length_us is None:
            self._refuse("weeks or longer, whose edges are not at whole multiples of a length since 1970")
        return _windowed(time, length_us)

    def _function(self, node: exp.Expr) -> Time | None:
        children = [*node.iter_expressions()]
        times = [time for child in children if (time := self.time(child)) is not None]
        if isinstance(node, exp.Greatest) and times and len(times) == len(children):
            lengths = {time.window_us for time in times}
            window_us = times[0].window_us if len(lengths) == 1 else None
            covers = frozenset().union(*(time.covers for time in times))
            return Time(covers, window_us, shift_us=None if any(time.shifted for time in times) else 0)
        columns = sum(1 for child in children if child.find(exp.Column))
        if len(times) != 1 or columns != 1:
            return None
        if isinstance(node, exp.Add | exp.Sub):
            (other,) = (child for child in children if not child.find(exp.Column))
            if other.find(exp.Interval):
                length_us = interval_us(other)
                return _shifted(
                    times[0], -length_us if length_us and isinstance(node, exp.Sub) else length_us
                )
        return replace(times[0], window_us=None)

    def _refuse(self, windows: str) -> None:
        if windows not in self.refused:
            self.refused.append(windows)


def interval_us(node: exp.Expr) -> int | None:
    """The length of an interval such as INTERVAL 1 HOUR; None if it is not written so plainly."""
    node = node.unnest()
    if isinstance(node, exp.Neg):
        length_us = interval_us(node.this)
        return None if length_us is None else -length_us
    if isinstance(node, exp.Add):  # as INTERVAL 1 HOUR 30 MINUTES is
        one_us, other_us = interval_us(node.this), interval_us(node.expression)
        return None if one_us is None or other_us is None else one_us + other_us
    unit = node.args.get("unit")
    is_plain = isinstance(node, exp.Interval) and isinstance(node.this, exp.Literal)
    if not is_plain or isinstance(unit, exp.IntervalSpan):
        return None
    number = node.this.name.strip()
    sign, number = (-1, number[1:]) if unit and number.startswith("-") else (1, number)
    try:
        return sign * parse_duration(f"{number} {unit.name if unit else ''}")
    except InputError:
        return None


def _windowed(time: Time, length_us: int | None) -> Time:
    finer = time.window_us
    # A window of windows is as long as the longer of the two.
    return replace(time, window_us=None if finer is None or length_us is None else max(finer, length_us))


def _shifted(time: Time | None, by_us: int | None) -> Time | None:
    if time is None:
        return None
    return replace(time, shift_us=None if time.shift_us is None or by_us is None else time.shift_us + by_us)


def _field(time: Time | None, field: str) -> Time | None:
    """A window's start or end; the end is the next window's first instant."""
    if time is None or not time.is_window or field.lower() not in ("start", "end"):
        return None
    return replace(time, is_window=False, shift_us=None if field.lower() == "end" else time.shift_us)


def _length_us(node: exp.Expr) -> int | None:
    """The length of a window such as '10 minutes'; None if it is not written so plainly."""
    try:
        return parse_duration(node.name) or None if isinstance(node, exp.Literal) else None
    except InputError:
        return None
