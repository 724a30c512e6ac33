"""What a user may write about a feed."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from freshline.base.errors import InputError
from freshline.base.names import one_of
from freshline.definitions.language.document import shown
from freshline.definitions.language.values import (
    Count,
    Duration,
    Entry,
    Flag,
    Given,
    PathText,
    PositiveDuration,
    PositiveNumber,
    Text,
)
from freshline.definitions.sections.name_timestamp import check_pattern
from freshline.definitions.sections.shed import ShedEntry

Arrival = Literal["files", "continuous"]
FileFormat = Literal["csv", "json", "parquet"]
AfterLoad = Literal["keep", "archive", "delete"]
# All are ASCII below 128, so that Spark can split lines before it decodes them.
ENCODINGS: tuple[str, ...] = (
    "utf-8",
    "us-ascii",
    "iso-8859-1",
    "windows-1250",
    "windows-1251",
    "windows-1252",
)
# None of them occurs in Spark's own texts of numbers and times, except the colon, which is therefore missing.
DELIMITERS: tuple[str, ...] = (",", ";", "|", "\t", "^", "~")


def _encoding(value: object) -> str:
    if isinstance(value, str) and value.lower() in ENCODINGS:
        return value.lower()
    raise InputError(f"{shown(value)} is not an encoding that can be read", f"Write {one_of(ENCODINGS)}")


Encoding = Annotated[
    str, PlainValidator(_encoding), WithJsonSchema({"type": "string", "enum": list(ENCODINGS)})
]


def _delimiter(value: object) -> str:
    if isinstance(value, str) and value in DELIMITERS:
        return value
    choices = one_of([json.dumps(each) for each in DELIMITERS])
    raise InputError(f"{shown(value)} is not a delimiter that can be read", f"Write {choices}")


Delimiter = Annotated[
    str, PlainValidator(_delimiter), WithJsonSchema({"type": "string", "enum": list(DELIMITERS)})
]
NamePattern = Annotated[Text, AfterValidator(check_pattern)]


class FeedEntry(Entry):
    """A source of data: one file in each period, or records that can be loaded at any time."""

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
    rows: Given[PositiveNumber] = Field(
        None,
        description="The average number of rows per second. `plan` and `simulate` use it for queries over "
        "its tables.",
        examples=[12500],
    )
    node: Given[Text] = Field(
        None, description="The node that loads it, if there are `nodes` (default: the only one)."
    )
    age_us: Given[Duration] = Field(
        None,
        alias="age",
        description="How old its oldest record may be when its file is found (default: `timestamp_jitter`, "
        "and never less). Deadlines of outputs count from that record. Only for `arrival: files`.",
    )
    burst: Given[Count] = Field(
        None,
        description="The most rows that a file has (default: `rows` × `period`). Only for `arrival: files`.",
        examples=[500],
    )
    path: Given[PathText] = Field(None, description="The directory in which the data files land.")
    format: Given[FileFormat] = Field(None, description="The files' format; json has one record per line.")
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
        description="Only for `format: csv`: the encoding of the files (default utf-8). A file with "
        "other bytes goes to quarantine.",
    )
    delimiter: Given[Delimiter] = Field(
        None,
        description="Only for `format: csv`: the character between two values (default a comma).",
        examples=[";"],
    )
    name_timestamp: Given[NamePattern] = Field(
        None,
        description="A pattern of file names with the directives of strptime. A file's timestamp is then "
        "read from its name, not from its records.",
        examples=["packets-%Y%m%dT%H%M%S.csv"],
    )
    lateness_us: Given[Duration] = Field(
        None,
        alias="lateness",
        description="By how much a record may come after newer ones without being late (default 0). "
        "It adds to the staleness of the tables.",
    )
    ahead_us: Given[Duration] = Field(
        None,
        alias="ahead",
        description="How far ahead of its arrival a file's timestamp may be before it is cut (default: one "
        "period).",
    )
    after_load: Given[AfterLoad] = Field(
        None, description="What happens to a file after it is loaded (default keep)."
    )
    shed: Given[ShedEntry] = Field(
        None,
        description="Limits each window of time to the records with the highest values. Only for `arrival: "
        "files`.",
        examples=[{"most": 15, "per": "1s", "value": "speed * 2"}],
    )
