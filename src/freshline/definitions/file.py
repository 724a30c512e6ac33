"""What a user may write in `freshline.yml`: the keys, their types and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from freshline.definitions.document import shown
from freshline.definitions.duration import DURATION_PATTERN, NUMBER_AND_UNIT, parse_duration
from freshline.definitions.errors import InputError
from freshline.definitions.name_timestamp import check_pattern
from freshline.definitions.names import NAME_PATTERN, cut, one_of
from freshline.definitions.warehouse import (
    ENCODINGS,
    AfterLoad,
    Arrival,
    FileFormat,
    PolicyName,
    Provisioning,
    Recovery,
)

TRACKS_MAX: Final = 1_000_000
# More digits mean nothing here, and as an exact fraction they could fill the memory.
_DIGITS_MAX: Final = 30

T = TypeVar("T")


def _given(value: object) -> object:
    if value is None:
        raise InputError("it is empty", "Give it a value, or remove the key")
    return value


def _duration(value: object) -> int:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise InputError(f"{shown(value)} is not a duration", NUMBER_AND_UNIT)
    if value != 0:
        number = cut(str(value))
        raise InputError(f"the duration {number} has no unit", f"Add the unit, such as '{number}s'")
    return 0


def _positive_duration(value: object) -> int:
    duration_us = _duration(value)
    if duration_us == 0:
        raise InputError("the duration is zero", "Give one above zero, such as '5 minutes'")
    return duration_us


def _number(least: int, most: int | None = None) -> Callable[[object], Fraction]:
    """A validator of exact numbers between two limits."""
    limits = f"a number of {least} or more" if most is None else f"a number from {least} to {most}"

    def validate(value: object) -> Fraction:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            raise InputError(f"{shown(value)} is not a number", f"Write {limits}, without quotes")
        exact = Decimal(value)
        if exact.is_finite() and _is_short(exact) and exact >= least and (most is None or exact <= most):
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


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise InputError(f"{shown(value)} is neither true nor false", "Write true or false, without quotes")


# A key that may be left out, but not left empty.
Given = Annotated[T | None, BeforeValidator(_given)]
Text = Annotated[str, StringConstraints(min_length=1)]

_DURATION_SCHEMA: Final = {"pattern": DURATION_PATTERN, "examples": ["5 minutes", "300s", "1h 30m"]}
Duration = Annotated[
    int,
    PlainValidator(_duration),
    # A bare 0 needs no unit.
    WithJsonSchema({"type": ["string", "integer"], **_DURATION_SCHEMA, "minimum": 0, "maximum": 0}),
]
PositiveDuration = Annotated[
    int, PlainValidator(_positive_duration), WithJsonSchema({"type": "string", **_DURATION_SCHEMA})
]
Rate = Annotated[Fraction, PlainValidator(_number(0)), WithJsonSchema({"type": "number", "minimum": 0})]
Share = Annotated[
    Fraction, PlainValidator(_number(0, 1)), WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})
]
Factor = Annotated[Fraction, PlainValidator(_number(1)), WithJsonSchema({"type": "number", "minimum": 1})]
Tracks = Annotated[
    int, PlainValidator(_tracks), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": TRACKS_MAX})
]


def _encoding(value: object) -> str:
    if isinstance(value, str) and value.lower() in ENCODINGS:
        return value.lower()
    raise InputError(f"{shown(value)} is not an encoding that can be read", f"Write {one_of(ENCODINGS)}")


Flag = Annotated[bool, PlainValidator(_flag), WithJsonSchema({"type": "boolean"})]
NamePattern = Annotated[Text, AfterValidator(check_pattern)]


Encoding = Annotated[
    str, PlainValidator(_encoding), WithJsonSchema({"type": "string", "enum": list(ENCODINGS)})
]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PoolEntry(_Entry):
    """A number of tracks under one policy."""

    model_config = ConfigDict(title="Pool")

    tracks: Tracks = Field(description="How many jobs run at once, one on each track.", examples=[2])
    policy: PolicyName = Field("edf", description="The order in which waiting jobs start.")
    cluster_factor: Given[Factor] = Field(
        None, description="Only with `policy: prp`: periods within this factor share a cluster (default 10)."
    )
    provisioning: Given[Provisioning] = Field(
        None,
        description="Only with `policy: aus` or `aus-slack`: the cost that a table's share of the tracks is "
        "made for. With `average` late tables recover faster and bounds hold in expectation only "
        "(default worst).",
    )
    recovery: Given[Recovery] = Field(
        None,
        description="Only with `policy: aus` or `aus-slack`: `fastest` gives one late table all the capacity "
        "that is spare, `together` lets all of them recover at the same time, each more slowly (default "
        "fastest).",
    )


class FeedEntry(_Entry):
    """A source of data: files that arrive one a period, or records that can be loaded at any time."""

    model_config = ConfigDict(title="Feed")

    arrival: Arrival = Field(
        "files",
        description="`files`: a data file every period; `continuous`: all records up to now, at any time.",
    )
    period_us: Given[PositiveDuration] = Field(
        None, alias="period", description="The time between two data files, or between two loads."
    )
    phase_us: Given[Duration] = Field(
        None, alias="phase", description="When the first file is due (default 0). Only for `arrival: files`."
    )
    jitter_us: Given[Duration] = Field(
        None,
        alias="jitter",
        description="How late a file may be, at most a period (default 0). Only for `arrival: files`.",
    )
    timestamp_jitter_us: Given[Duration] = Field(
        None,
        alias="timestamp_jitter",
        description="How much older than its arrival a file's newest record may be (default 0). "
        "Only for `arrival: files`.",
    )
    path: Given[Text] = Field(None, description="The directory in which the data files land.")
    format: Given[FileFormat] = Field(None, description="The data files' format; json is one record a line.")
    columns: Given[Text] = Field(
        None,
        alias="schema",
        description="The columns and their Spark SQL types.",
        examples=["ts timestamp, src string, bytes long"],
    )
    timestamp: Given[Text] = Field(None, description="The column that says when a record was made.")
    header: Given[Flag] = Field(
        None, description="Only for `format: csv`: whether the first line names the columns (default true)."
    )
    encoding: Given[Encoding] = Field(
        None,
        description="Only for `format: csv`: the encoding of the files (default utf-8). A file that has "
        "other bytes goes to quarantine.",
    )
    name_timestamp: Given[NamePattern] = Field(
        None,
        description="A pattern of the files' names, in the directives of strptime. A file's timestamp is "
        "then read from its name, not from its records.",
        examples=["packets-%Y%m%dT%H%M%S.csv"],
    )
    lateness_us: Given[Duration] = Field(
        None,
        alias="lateness",
        description="By how much a record may come after newer ones without being late (default 0). "
        "The tables are staler by that.",
    )
    ahead_us: Given[Duration] = Field(
        None,
        alias="ahead",
        description="How far ahead of its arrival a file's timestamp may be before it is cut (default: one "
        "period).",
    )
    after_load: Given[AfterLoad] = Field(
        None, description="What becomes of a file once it is loaded (default keep)."
    )


class CostEntry(_Entry):
    """The time that an update takes: startup + rate × the length of time it loads, give or take."""

    model_config = ConfigDict(
        title="Cost", json_schema_extra={"anyOf": [{"required": ["startup"]}, {"required": ["rate"]}]}
    )

    startup_us: Duration = Field(
        0,
        alias="startup",
        description="The part of an update's time that does not depend on how much it loads (default 0s).",
    )
    rate: Rate = Field(
        Fraction(0), description="Seconds of work for each second of data that is loaded (default 0)."
    )
    variability: Share = Field(
        Fraction(0), description="By which share the time may vary up and down: 0.2 is ±20 % (default 0)."
    )

    @model_validator(mode="after")
    def _costs_something(self) -> Self:
        if self.model_fields_set.isdisjoint({"startup_us", "rate"}):
            raise InputError("neither `startup` nor `rate` is given", "Add one, such as `startup: 3s`")
        return self


class TableEntry(_Entry):
    """A base table, which loads a feed, or a derived table, which is a query over other tables."""

    model_config = ConfigDict(
        title="Table",
        json_schema_extra={
            "oneOf": [
                {"required": ["feed"]},
                {"anyOf": [{"required": ["sql"]}, {"required": ["sources"]}]},
            ]
        },
    )

    feed: Given[Text] = Field(None, description="The feed that this table loads. It makes a base table.")
    select: Given[Text] = Field(
        None,
        description="A query over the columns of the feed, for each of its records by itself (default: all "
        "columns). Only for a base table.",
        examples=["SELECT ts, src, bytes * 8 AS bits FROM packets WHERE bytes > 0"],
    )
    sql: Given[Text] = Field(
        None,
        description="The query over other tables that gives this table's rows. It makes a derived table.",
    )
    sources: Given[Annotated[list[Text], Field(min_length=1)]] = Field(
        None, description="The tables that a derived table reads (default: those that its SQL reads)."
    )
    timestamp: Given[Text] = Field(
        None,
        description="The column that says when a row was made (default: that of the feed, or of the first "
        "source). In a base table only with `select`.",
    )
    period_us: Given[PositiveDuration] = Field(
        None,
        alias="period",
        description="The time between two updates. A base table's is its feed's; on a continuous feed it may "
        "have its own.",
    )
    phase_us: Given[Duration] = Field(
        None,
        alias="phase",
        description="When the first update is released (default 0). Only with no `files` feed upstream.",
    )
    lookback_us: Given[Duration] = Field(
        None,
        alias="lookback",
        description="How far back an update reads its sources again, for joins over a range of time "
        "(default 0). Only for a derived table.",
    )
    align_us: Given[PositiveDuration] = Field(
        None,
        alias="align",
        description="The length of the windows that the SQL groups by, at most the period: updates end at "
        "their edges. Only for a derived table.",
    )
    pool: Given[Text] = Field(None, description="The pool that updates it (default: the only one).")
    target_lag_us: Given[PositiveDuration] = Field(
        None, alias="target_lag", description="How stale the table may ever be."
    )
    cost: Given[CostEntry] = Field(None, description="What an update costs.")
    late_after_us: Given[PositiveDuration] = Field(
        None,
        alias="late_after",
        description="A table that is behind its sources by more is late, and recovers where the pool's "
        "policy is `aus` or `aus-slack` (default: its staleness bound).",
    )
    weight: Given[Rate] = Field(
        None,
        description="Of several late tables the one with the larger weight recovers first (default 1). It "
        "matters in a pool with `policy: aus` or `aus-slack`.",
    )


_NAMED: Final[dict[str, Any]] = {"propertyNames": {"pattern": NAME_PATTERN}}


class WarehouseFile(_Entry):
    """A warehouse: its feeds, its tables and the pools that update them."""

    model_config = ConfigDict(title="Freshline warehouse")

    name: Text = Field(description="What the warehouse is called.", examples=["network"])
    storage: Text = Field("./warehouse", description="The directory that holds the tables.")
    pools: dict[str, PoolEntry] = Field(
        description="The pools of tracks, by name.", json_schema_extra={**_NAMED, "minProperties": 1}
    )
    feeds: dict[str, FeedEntry] = Field({}, description="The feeds, by name.", json_schema_extra=_NAMED)
    tables: dict[str, TableEntry] = Field(
        description="The tables, by name.", json_schema_extra={**_NAMED, "minProperties": 1}
    )


SECTIONS: Final[dict[str, type[_Entry]]] = {"pools": PoolEntry, "feeds": FeedEntry, "tables": TableEntry}


class _EditorSchema(GenerateJsonSchema):
    """Without what only says that a key may be left out: null types and null defaults."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def encode_default(self, dft: Any) -> Any:
        return float(dft) if isinstance(dft, Fraction) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of `freshline.yml`, for editors."""
    schema = WarehouseFile.model_json_schema(schema_generator=_EditorSchema)
    return {"$schema": _EditorSchema.schema_dialect, **schema}
