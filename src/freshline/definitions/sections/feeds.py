"""The section `feeds`: sources of data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from freshline.base.duration import SECOND, format_duration
from freshline.base.errors import NOWHERE, InputError, Place
from freshline.base.names import one_of
from freshline.definitions.language.section import LiveCheck, Path, Resolution, Section
from freshline.definitions.sections.feed_entry import AfterLoad, Arrival, FeedEntry, FileFormat
from freshline.definitions.sections.nodes import NODES, node_named
from freshline.definitions.sections.shed import MISSING as SHED_MISSING
from freshline.definitions.sections.shed import Shed, check_shed_live
from freshline.sql.columns import parse_columns
from freshline.sql.time import Relation, own_time

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
