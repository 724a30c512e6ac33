"""The section `feeds`: sources of data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from freshline.base.duration import SECOND, format_duration
from freshline.base.errors import NOWHERE, InputError, Place
from freshline.base.names import one_of
from freshline.definitions.language.document import shown
from freshline.definitions.language.section import LiveCheck, Path, Resolution, Section
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
from freshline.definitions.sections.nodes import NODES, node_named
from freshline.definitions.sections.shed import MISSING as SHED_MISSING
from freshline.definitions.sections.shed import Shed, ShedEntry, check_shed_live
from freshline.sql.columns import parse_columns
from freshline.sql.time import Relation, own_time

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
# The keys of a feed that a run needs, each with the remedy if it is missing.
_NEEDED_LIVE: Final = {
    "path": "Add the directory in which its files land, such as `path: landing/packets`",
    "format": "Add `format: csv`, `json` or `parquet`",
    "schema": "Add its columns, such as `schema: ts timestamp, src string, bytes long`",
    "timestamp": "Add the column that says when a record was made, such as `timestamp: ts`",
}


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the data files of a feed are and how to read them. A run needs it, a plan does not."""

    path: str | None = None
    format: FileFormat | None = None
    schema: str | None = None  # as in Spark: "ts timestamp, bytes long"
    timestamp: str | None = None  # the column
    header: bool = True  # csv only: the first line has the column names
    encoding: str = "utf-8"  # csv only; one of ENCODINGS
    delimiter: str = ","  # csv only; one of DELIMITERS
    name_timestamp: str | None = None  # a strptime pattern: the file's name has the timestamp
    lateness_us: int = 0  # records may come this much later than newer ones without being late
    ahead_us: int | None = None  # a timestamp further ahead of its arrival is cut; default one period
    after_load: AfterLoad = "keep"


@dataclass(frozen=True, slots=True)
class Feed:
    """A source of data: one file in each period, or records that can be loaded at any time."""

    name: str
    arrival: Arrival
    period_us: int | None  # never None for files
    phase_us: int = 0  # files only
    jitter_us: int = 0  # files only: a file may be this late
    timestamp_jitter_us: int = 0  # files only: how much older than its arrival a file's newest record may be
    landing: Landing = Landing()
    place: Place = NOWHERE
    rows: Fraction | None = None  # per second: the estimate for queries over its tables
    node: str | None = None  # where its files land, in a warehouse with nodes
    age_us: int | None = None  # files only: as declared; `oldest_us` is what counts
    burst: int | None = None  # files only: the most rows in a file
    shed: Shed | None = None  # files only

    @property
    def oldest_us(self) -> int:
        """How old its oldest record may be when its file is found.

        The newest may be as old as `timestamp_jitter`, and no record is newer.
        """
        return max(self.age_us or 0, self.timestamp_jitter_us)

    @property
    def next_file_us(self) -> int:
        """Files only: the longest time without a file, between two or before the first."""
        assert self.period_us is not None, f"{self.name} has files and no period"
        return max(self.period_us, self.phase_us) + self.jitter_us

    @property
    def rows_most(self) -> Fraction | None:
        """The most rows that a file has; None if unknown."""
        if self.burst is not None:
            return Fraction(self.burst)
        if self.rows is None or self.period_us is None:
            return None
        return self.rows * self.period_us / SECOND

    @property
    def rows_most_loaded(self) -> Fraction | None:
        """The most rows of a file that are loaded; None if unknown.

        Its records are no older than `age`, or than one period without `age`. That limits the windows that
        they are in, and each of these windows may have been empty before.
        """
        if self.shed is None or self.period_us is None:
            return self.rows_most
        period_us = self.period_us + self.jitter_us if self.age_us is None else 0
        span_us = max(self.oldest_us, period_us)
        most = Fraction(self.shed.most * (-(-span_us // self.shed.per_us) + 1))
        return most if self.rows_most is None else min(most, self.rows_most)

    @property
    def rows_loaded(self) -> Fraction | None:
        """The number of its rows that are loaded per second; None if the number of rows is unknown."""
        return self.rows if self.rows is None or self.shed is None else min(self.rows, self.shed.rows)


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


def _resolve(resolution: Resolution) -> dict[str, Any]:
    entries = resolution.entries(FEEDS)
    return {"feeds": {name: _feed(resolution, name, entry) for name, entry in entries.items()}}


def _feed(resolution: Resolution, name: str, entry: FeedEntry) -> Feed:
    path = ("feeds", name)
    period_us, jitter_us = entry.period_us, entry.jitter_us
    if entry.arrival == "continuous":
        _check_continuous(resolution, path, entry)
    elif period_us is None:
        remedy = "Add the time between two files, such as `period: 5 minutes`, or set `arrival: continuous`"
        resolution.report(path, "a feed of files has no `period`", remedy)
    elif jitter_us is not None and jitter_us > period_us:
        what = f"it is longer than the feed's period of {format_duration(period_us)}"
        resolution.report((*path, "jitter"), what, "Give at most the period")
    return Feed(
        name=name,
        arrival=entry.arrival,
        period_us=period_us,
        phase_us=entry.phase_us or 0,
        jitter_us=jitter_us or 0,
        timestamp_jitter_us=entry.timestamp_jitter_us or 0,
        landing=_landing(resolution, path, entry),
        place=resolution.place(path),
        rows=entry.rows,
        node=_node(resolution, path, entry),
        age_us=entry.age_us,
        burst=entry.burst,
        shed=None if entry.shed is None else entry.shed.resolved(),
    )


def _node(resolution: Resolution, path: Path, entry: FeedEntry) -> str | None:
    nodes = resolution.names(NODES).all
    if entry.node is None and len(nodes) > 1:
        remedy = f"Add the node on which its files land, `node: {one_of(nodes).replace('`', '')}`"
        resolution.report(path, f"`node` is missing, and there are {len(nodes)} nodes", remedy)
    if entry.node is None and len(nodes) == 1:
        return nodes[0]
    return node_named(resolution, path, entry.node)


def _landing(resolution: Resolution, path: Path, entry: FeedEntry) -> Landing:
    if entry.shed is not None and entry.name_timestamp is not None:
        what = "it needs the timestamps of the records, which are not read with `name_timestamp`"
        resolution.report((*path, "shed"), what, "Remove it, or `name_timestamp`")
    for key in ("header", "encoding", "delimiter"):
        if getattr(entry, key) is not None and entry.format != "csv" and entry.arrival == "files":
            what = "it has an effect on csv files only"
            resolution.report((*path, key), what, "Remove it, or set `format: csv`")
    return Landing(
        path=entry.path,
        format=entry.format,
        schema=entry.columns,
        timestamp=entry.timestamp,
        header=entry.header is not False,
        encoding=entry.encoding or "utf-8",
        delimiter=entry.delimiter or ",",
        name_timestamp=entry.name_timestamp,
        lateness_us=entry.lateness_us or 0,
        ahead_us=entry.ahead_us,
        after_load=entry.after_load or "keep",
    )


def _check_continuous(resolution: Resolution, path: Path, entry: FeedEntry) -> None:
    only_files = {
        "jitter": entry.jitter_us,
        "timestamp_jitter": entry.timestamp_jitter_us,
        "header": entry.header,
        "encoding": entry.encoding,
        "delimiter": entry.delimiter,
        "name_timestamp": entry.name_timestamp,
        "lateness": entry.lateness_us,
        "ahead": entry.ahead_us,
        "after_load": entry.after_load,
        "age": entry.age_us,
        "burst": entry.burst,
        "shed": entry.shed,
    }
    useless = "it has no effect on a continuous feed"
    if entry.phase_us is not None:
        resolution.report((*path, "phase"), useless, "Move it to the tables that load the feed")
    for key, value in only_files.items():
        if value is not None:
            resolution.report((*path, key), useless, "Remove it, or set `arrival: files`")


def _from_record(record: dict[str, Any]) -> Feed:
    rows = None if record.get("rows") is None else Fraction(record["rows"])
    shed = None if record.get("shed") is None else Shed(**record["shed"])
    return Feed(**{**record, "landing": Landing(**record["landing"]), "rows": rows, "shed": shed})


def _check_live(check: LiveCheck) -> None:
    feeds = check.warehouse.feeds
    used = {table.feed for table in check.warehouse.stored.values()}
    for feed in feeds.values():
        if feed.name not in used:
            remedy = "Load it with a table, or remove it; `plan` and `simulate` accept it"
            check.report(("feeds", feed.name), feed.place, "no table loads it", remedy)
    relations = {name: _live_relation(check, feed) for name, feed in feeds.items() if feed.name in used}
    check.relations["feeds"] = relations


def _live_relation(check: LiveCheck, feed: Feed) -> Relation:
    path = ("feeds", feed.name)
    if feed.arrival == "continuous":
        remedy = "Let its data come in files (`arrival: files`); `plan` and `simulate` accept it"
        check.report(path, feed.place, "a continuous feed cannot be run yet", remedy)
        return Relation(None, own_time(feed.landing.timestamp))
    for key, remedy in _NEEDED_LIVE.items():
        if getattr(feed.landing, key) is None:
            check.report(path, feed.place, f"`{key}` is missing, and a run needs it", remedy)
    names = None
    if feed.landing.schema is not None:
        try:
            names = _checked_names(feed.landing, feed.landing.schema)
        except InputError as error:
            check.report((*path, "schema"), feed.place, error.what, error.remedy)
        check_shed_live(check, feed)
    return Relation(names, own_time(feed.landing.timestamp))


def _checked_names(landing: Landing, schema: str) -> tuple[str, ...]:
    """The columns of a schema, after checks of what the format and the timestamp need."""
    columns = parse_columns(schema)
    if landing.format == "csv" and any(column.is_nested for column in columns):
        name = next(column.name for column in columns if column.is_nested)
        raise InputError(f"a csv file cannot hold the column `{name}`", "Use `format: json` or `parquet`")
    names = tuple(column.name.lower() for column in columns)
    if landing.timestamp is None:
        return names
    column = next((each for each in columns if each.name.lower() == landing.timestamp.lower()), None)
    if column is None:
        remedy = "Add it, or name another column with `timestamp`"
        raise InputError(f"it has no column `{landing.timestamp}`, the timestamp", remedy)
    if not column.is_timestamp:
        remedy = f"Declare it as `{column.name} timestamp`"
        raise InputError(f"the timestamp column `{column.name}` is not of the type timestamp", remedy)
    return names


FEEDS: Final = Section(
    "feeds",
    FeedEntry,
    _resolve,
    _from_record,
    _check_live,
    missing=SHED_MISSING,
    description="The feeds, by name.",
)
