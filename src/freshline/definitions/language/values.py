"""The types of values in the file (durations, numbers, texts, flags), and the base of an entry."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
)

from freshline.base.duration import (
    DAY,
    DURATION_PATTERN,
    MINUTE,
    NUMBER_AND_UNIT,
    parse_duration,
    parse_exact_duration,
)
from freshline.base.errors import InputError
from freshline.base.names import cut
from freshline.definitions.language.document import shown

TRACKS_MAX: Final = 1_000_000
_COUNT_MAX: Final = 10**12
# Active readers need some history; the commits of a year are already millions of files in one folder.
_HISTORY_LEAST_US: Final = MINUTE
_HISTORY_MOST_US: Final = 366 * DAY
# More digits have no use here, and an exact fraction of them could fill the memory.
_DIGITS_MAX: Final = 30

T = TypeVar("T")


class Entry(BaseModel):
    """The keys that a user may write at one place of the file; others are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _given(value: object) -> object:
    if value is None:
        raise InputError("it is empty", "Give it a value, or remove the key")
    return value


def _path(text: str) -> str:
    if "\0" in text:
        raise InputError("it has a character with the code 0, which no path can have", "Remove it")
    return text


def _duration(value: object) -> int:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InputError(f"{shown(value)} is not a duration", NUMBER_AND_UNIT)
    if value != 0:
        number = cut(str(value))
        raise InputError(f"the duration {number} has no unit", f"Add the unit, such as '{number}s'")
    return 0


def _exact_duration(value: object) -> Fraction:
    return parse_exact_duration(value) if isinstance(value, str) else Fraction(_duration(value))


def _positive_duration(value: object) -> int:
    duration_us = _duration(value)
    if duration_us == 0:
        raise InputError("the duration is zero", "Give one above zero, such as '5 minutes'")
    return duration_us


def _history(value: object) -> int:
    duration_us = _positive_duration(value)
    if not _HISTORY_LEAST_US <= duration_us <= _HISTORY_MOST_US:
        raise InputError("a history is from a minute to a year", "Give one between, such as '1 day'")
    return duration_us


def _number(least: int, most: int | None = None, *, above: bool = False) -> Callable[[object], Fraction]:
    """A validator of exact numbers between two limits; `above` excludes the lower one."""
    if above:
        limits = f"a number above {least}" + ("" if most is None else f", at most {most}")
    else:
        limits = f"a number of {least} or more" if most is None else f"a number from {least} to {most}"

    def is_within(exact: Decimal) -> bool:
        return (exact > least if above else exact >= least) and (most is None or exact <= most)

    def validate(value: object) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise InputError(f"{shown(value)} is not a number", f"Write {limits}, without quotes")
        exact = Decimal(value)
        if exact.is_finite() and _is_short(exact) and is_within(exact):
            return Fraction(exact)
        raise InputError(f"{value} is out of range", f"Write {limits}")

    return validate


def _is_short(number: Decimal) -> bool:
    return len(number.as_tuple().digits) <= _DIGITS_MAX and abs(number.adjusted()) <= _DIGITS_MAX


def _tracks(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= TRACKS_MAX:
        return value
    raise InputError(
        f"{shown(value)} is not a whole number from 1 to {TRACKS_MAX}", "Write how many jobs may run at once"
    )


def _count(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _COUNT_MAX:
        return value
    raise InputError(f"{shown(value)} is not a whole number from 1 to {_COUNT_MAX}", "Write how many it is")


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | Decimal):
        return str(value)
    raise InputError(f"{shown(value)} is not a setting's value", "Write a text, a number, true or false")


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InputError(f"{shown(value)} is neither true nor false", "Write true or false, without quotes")


# A key that may be missing, but not empty.
Given = Annotated[T | None, BeforeValidator(_given)]
Text = Annotated[str, StringConstraints(min_length=1)]
PathText = Annotated[Text, AfterValidator(_path)]

_DURATION_SCHEMA: Final = {"pattern": DURATION_PATTERN, "examples": ["5 minutes", "300s", "1h 30m"]}
Duration = Annotated[
    int,
    PlainValidator(_duration),
    # A bare 0 needs no unit.
    WithJsonSchema({"type": ["string", "integer"], **_DURATION_SCHEMA, "minimum": 0, "maximum": 0}),
]
ExactDuration = Annotated[
    Fraction,
    PlainValidator(_exact_duration),
    WithJsonSchema({"type": ["string", "integer"], **_DURATION_SCHEMA, "minimum": 0, "maximum": 0}),
]
PositiveDuration = Annotated[
    int, PlainValidator(_positive_duration), WithJsonSchema({"type": "string", **_DURATION_SCHEMA})
]
History = Annotated[int, PlainValidator(_history), WithJsonSchema({"type": "string", **_DURATION_SCHEMA})]
Rate = Annotated[Fraction, PlainValidator(_number(0)), WithJsonSchema({"type": "number", "minimum": 0})]
Share = Annotated[
    Fraction, PlainValidator(_number(0, 1)), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
PositiveNumber = Annotated[
    Fraction,
    PlainValidator(_number(0, above=True)),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
PositiveShare = Annotated[
    Fraction,
    PlainValidator(_number(0, 1, above=True)),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
]
Factor = Annotated[Fraction, PlainValidator(_number(1)), WithJsonSchema({"type": "number", "minimum": 1})]
Tracks = Annotated[
    int, PlainValidator(_tracks), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": TRACKS_MAX})
]
Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
Count = Annotated[
    int, PlainValidator(_count), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": _COUNT_MAX})
]
Setting = Annotated[
    str, PlainValidator(_setting), WithJsonSchema({"type": ["string", "number", "integer", "boolean"]})
]
