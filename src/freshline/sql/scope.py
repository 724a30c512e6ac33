"""What the expressions of a SELECT say about time: a small algebra, with None for what it does not know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Final

from sqlglot import exp

from freshline.base.duration import DAY, HOUR, MICROSECOND, MILLISECOND, MINUTE, SECOND
from freshline.sql.constants import duration_us, interval_us, whole_number
from freshline.sql.query import parse_query
from freshline.sql.time import Relation, Time, TimeForm, newest

# Windows of these units begin at multiples of their length since 1970; those of weeks and months do not.
_UNITS: Final = {
    "MICROSECOND": MICROSECOND,
    "MILLISECOND": MILLISECOND,
    "SECOND": SECOND,
    "MINUTE": MINUTE,
    "HOUR": HOUR,
    "DAY": DAY,
    "DD": DAY,
}
_LONGER: Final = frozenset(
    {"WEEK", "MONTH", "MON", "MM", "QUARTER", "YEAR", "YYYY", "YY", "DECADE", "CENTURY"}
)
_Type = exp.DataType.Type
_TIMESTAMPS: Final = frozenset(
    {_Type.TIMESTAMP, _Type.TIMESTAMPTZ, _Type.TIMESTAMPLTZ, _Type.TIMESTAMPNTZ, _Type.DATETIME}
)
_INTEGERS: Final = frozenset({_Type.INT, _Type.BIGINT})
# Functions from a timestamp to an integer, and from an integer to a timestamp.
_COUNTS: Final[dict[type[exp.Expr], int]] = {
    exp.UnixSeconds: SECOND,
    exp.StrToUnix: SECOND,
    exp.TimeToUnix: SECOND,
    exp.UnixMillis: MILLISECOND,
    exp.UnixMicros: MICROSECOND,
}
_COUNTED: Final = {
    "TIMESTAMP_SECONDS": SECOND,
    "TIMESTAMP_MILLIS": MILLISECOND,
    "TIMESTAMP_MICROS": MICROSECOND,
}


class Scope:
    """The relations of one SELECT, and what its expressions say about time."""

    def __init__(self, relations: dict[str, Relation]) -> None:
        self.relations = relations
        self.window: Time | None = None  # the meaning of `window` if the SELECT groups by one
        self.group_us: int | None = None  # the length of the windows that it groups by
        self.refused: list[str] = []  # kinds of windows in which no table can be kept up to date

    def time(self, node: exp.Expr | None) -> Time | None:
        """The time that an expression gives; None if it cannot be relied on."""
        if node is None:  # such as `floor()`, which sqlglot accepts
            return None
        node = node.unnest().unalias().unnest()
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Dot):
            return _field(self.time(node.this), node.expression.name)
        if isinstance(node, exp.Anonymous):
            return self._named(node)
        if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
            return self._truncated(node)
        if isinstance(node, exp.Greatest):
            return self._newest([*node.iter_expressions()])
        if isinstance(node, exp.Max | exp.Min):
            time = self.time(node.this) if self.group_us is not None else None
            return time.coarsened(self.group_us) if time and self.group_us and not node.expressions else None
        return self._converted(node) or self._computed(node)

    def mentioned(self, node: exp.Expr) -> set[str]:
        """The relations whose times occur in an expression."""
        times = (self.time(column) for column in node.find_all(exp.Column))
        return {alias for time in times if time for alias in time.covers}

    def has_column(self, name: str) -> bool:
        """Whether a name is, or may be, a column of the relations."""
        return any(relation.names is None or name in relation.names for relation in self.relations.values())

    def _column(self, node: exp.Column) -> Time | None:
        first, *rest = (part.name.lower() for part in node.parts)
        if rest and first in self.relations:
            second, *rest = rest
            time = self.relations[first].times.get(second)
            time = time and replace(time, covers=frozenset({first}))
        else:
            time = self._unqualified(first)
        for field in rest:
            time = _field(time, field)
        return time

    def _unqualified(self, name: str) -> Time | None:
        """Several relations have the same name only if they are joined by it, so the first one will do."""
        owner = next((alias for alias, each in self.relations.items() if name in each.times), None)
        if owner is not None:
            return replace(self.relations[owner].times[name], covers=frozenset({owner}))
        return self.window if name == "window" else None

    def _named(self, node: exp.Anonymous) -> Time | None:
        name = node.name.upper()
        arguments = node.expressions
        time = self.time(arguments[0]) if arguments else None
        if time is None:
            return None
        if name == "WINDOW":
            return self._window(time, arguments[1:])
        if name == "SESSION_WINDOW":
            self._refuse("sessions, which have no fixed edges")
        elif name == "WINDOW_TIME" and time.form is TimeForm.WINDOW:
            return replace(time.shifted(time.unit_us - 1), form=TimeForm.INSTANT, unit_us=1)
        elif name in _COUNTED:
            return _counted(time, _COUNTED[name])
        elif name == "BIGINT":
            return _whole(time)
        elif name == "DOUBLE":
            return _fraction(time)
        return None

    def _window(self, time: Time, lengths: list[exp.Expr]) -> Time | None:
        if len(lengths) != 1:
            self._refuse("windows that overlap, or begin at an offset")
            return None
        length_us = duration_us(lengths[0].name) if lengths[0].is_string else None
        if not length_us or time.form not in (TimeForm.INSTANT, TimeForm.WINDOW):
            return None
        # Spark takes a window's last instant, which is in the longer window of its start if lengths divide.
        is_clear = time.form is TimeForm.INSTANT or length_us % time.unit_us == 0
        return replace(time.floored(length_us), form=TimeForm.WINDOW, unit_us=length_us) if is_clear else None

    def _truncated(self, node: exp.TimestampTrunc | exp.DateTrunc) -> Time | None:
        time = self.time(node.this)
        unit = node.unit.name.upper() if node.unit else ""
        if time is None or time.form is not TimeForm.INSTANT:
            return None
        if unit in _LONGER:
            self._refuse("weeks or longer, whose edges are not at whole multiples of a length since 1970")
        is_timestamp = isinstance(node, exp.TimestampTrunc)  # `trunc` only knows weeks and longer
        return time.floored(_UNITS[unit]) if is_timestamp and unit in _UNITS else None

    def _newest(self, nodes: Iterable[exp.Expr]) -> Time | None:
        times = [self.time(node) for node in nodes]
        known = [time for time in times if time]
        return newest(known) if len(known) == len(times) and all(_is_plain(time) for time in known) else None

    def _converted(self, node: exp.Expr) -> Time | None:
        """A timestamp, a date or a number converted from another."""
        if isinstance(node, exp.TsOrDsToDate | exp.Date) and not node.args.get("format"):
            return _date(self.time(node.this))
        if isinstance(node, exp.Floor) and node.args.get("decimals") is None:
            return _whole(self.time(node.this), down=True)
        if isinstance(node, exp.UnixToStr):
            time = self.time(node.this)
            is_plain = node.args.get("format") == _usual_format()
            return (
                replace(time, form=TimeForm.TEXT) if time and is_plain and _is_whole(time, SECOND) else None
            )
        if type(node) in _COUNTS:
            # unix_timestamp rounds towards zero, the others down; for positive values both are the same.
            time, unit_us = self.time(node.this), _COUNTS[type(node)]
            if time is None or time.form is not TimeForm.INSTANT:
                return None
            return replace(time.truncated(unit_us), form=TimeForm.NUMBER, unit_us=unit_us)
        return self._cast(node) if isinstance(node, exp.Cast) else None

    def _cast(self, node: exp.Cast) -> Time | None:
        time, kind = self.time(node.this), node.to.this
        if time is None or time.form is TimeForm.WINDOW:
            return None
        if kind in _TIMESTAMPS:
            return time if time.form is TimeForm.INSTANT else _counted(time, SECOND)
        if kind == _Type.DATE:
            return _date(time)
        if kind in _INTEGERS:
            return _whole(time)
        return _fraction(time) if kind == _Type.DOUBLE else None

    def _computed(self, node: exp.Expr) -> Time | None:
        """A time plus a length, or a number of units combined with another number."""
        if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv):
            return None
        left, right = node.this, node.expression
        time = self.time(left)
        if time is None and isinstance(node, exp.Add | exp.Mul):  # these two are commutative
            left, right = right, left
            time = self.time(left)
        if time is None:
            return None
        sign = -1 if isinstance(node, exp.Sub) else 1
        if isinstance(node, exp.Add | exp.Sub) and time.form is TimeForm.INSTANT:
            length_us = interval_us(right)
            return None if length_us is None else time.shifted(sign * length_us)
        count = whole_number(right)
        if count is None or time.form not in (TimeForm.NUMBER, TimeForm.FRACTION):
            return None
        if isinstance(node, exp.Add | exp.Sub):
            return time.shifted(sign * count * time.unit_us) if time.form is TimeForm.NUMBER else None
        return _scaled(time, node, count)

    def _refuse(self, windows: str) -> None:
        if windows not in self.refused:
            self.refused.append(windows)


def _scaled(time: Time, node: exp.Expr, count: int) -> Time | None:
    """A number multiplied or divided by a constant. A second division may round up, so it gives None."""
    if count <= 0:
        return None
    if isinstance(node, exp.Mul):
        is_exact = time.form is TimeForm.NUMBER and time.unit_us % count == 0
        return replace(time, unit_us=time.unit_us // count) if is_exact else None
    longer = replace(time, unit_us=time.unit_us * count)
    if isinstance(node, exp.Div):
        return replace(longer, form=TimeForm.FRACTION) if time.form is TimeForm.NUMBER else None
    return (
        replace(longer.truncated(longer.unit_us), form=TimeForm.NUMBER)
        if time.form is TimeForm.NUMBER
        else None
    )


def _whole(time: Time | None, down: bool = False) -> Time | None:
    """An integer: a cast rounds towards zero, `floor` rounds down."""
    if time is None or time.form not in (TimeForm.NUMBER, TimeForm.FRACTION, TimeForm.INSTANT):
        return None
    if time.form is TimeForm.INSTANT:  # a cast counts seconds
        return None if down else replace(time.floored(SECOND), form=TimeForm.NUMBER, unit_us=SECOND)
    whole = time.floored(time.unit_us) if down else time.truncated(time.unit_us)
    return replace(whole, form=TimeForm.NUMBER)


def _fraction(time: Time) -> Time | None:
    """A number of seconds with a fraction."""
    if time.form is TimeForm.INSTANT:
        return replace(time, form=TimeForm.FRACTION, unit_us=SECOND)
    return replace(time, form=TimeForm.FRACTION) if time.form is TimeForm.NUMBER else None


def _counted(time: Time, unit_us: int) -> Time | None:
    """The timestamp that is this number of units after 1970."""
    is_counted = time.form is TimeForm.TEXT or (time.form is TimeForm.NUMBER and time.unit_us == unit_us)
    return replace(time, form=TimeForm.INSTANT, unit_us=1) if is_counted else None


def _date(time: Time | None) -> Time | None:
    return time.floored(DAY) if time and time.form is TimeForm.INSTANT else None


def _is_whole(time: Time, unit_us: int) -> bool:
    return time.form is TimeForm.NUMBER and time.unit_us == unit_us


def _is_plain(time: Time) -> bool:
    return time.form in (TimeForm.INSTANT, TimeForm.NUMBER)


def _field(time: Time | None, field: str) -> Time | None:
    """The start or end of a window; the end is the first instant of the next window."""
    if time is None or time.form is not TimeForm.WINDOW or field.lower() not in ("start", "end"):
        return None
    instant = replace(time, form=TimeForm.INSTANT, unit_us=1)
    return instant if field.lower() == "start" else instant.shifted(time.unit_us)


@cache
def _usual_format() -> exp.Expr:
    """The default format of `from_unixtime`, whose text can be read back as a timestamp."""
    format_ = parse_query("SELECT from_unixtime(0)").selects[0].args["format"]
    assert isinstance(format_, exp.Expr)
    return format_
