"""What a warehouse is: frozen records, complete and consistent, without behaviour.

They are made by `freshline.definitions.load` from a user's file, or by hand in tests. All durations are
whole microseconds; every default has been filled in and every source has been found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from freshline.definitions.errors import Place

Arrival = Literal["files", "continuous"]
FileFormat = Literal["csv", "json", "parquet"]
AfterLoad = Literal["keep", "archive", "delete"]
PolicyName = Literal["fifo", "rm", "edf", "edf-strict", "clustered-edf", "prp", "aus", "aus-slack"]
Provisioning = Literal["worst", "average"]
Recovery = Literal["fastest", "together"]
# All are ASCII below 128, so that Spark can tell lines apart before it decodes them.
ENCODINGS: tuple[str, ...] = (
    "utf-8",
    "us-ascii",
    "iso-8859-1",
    "windows-1250",
    "windows-1251",
    "windows-1252",
)
ADAPTIVE: frozenset[PolicyName] = frozenset({"aus", "aus-slack"})

NOWHERE = Place("<memory>", 0)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one update of length L: (S + R·L), varying by up to ±b (paper 004, Definition 7)."""

    startup_us: int
    rate: Fraction
    variability: Fraction = Fraction(0)


@dataclass(frozen=True, slots=True)
class Pool:
    """A number of tracks under one policy."""

    name: str
    tracks: int
    policy: PolicyName = "edf"
    cluster_factor: Fraction = Fraction(10)  # prp only: periods within this factor share a cluster
    provisioning: Provisioning = "worst"  # adaptive policies only: which cost a table's share is made for
    recovery: Recovery = "fastest"  # adaptive policies only: one late table as fast as can be, or all at once
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Landing:
    """Where a feed's data files are found and how they are read. Needed to run, not to plan."""

    path: str | None = None
    format: FileFormat | None = None
    schema: str | None = None  # in Spark's words: "ts timestamp, bytes long"
    timestamp: str | None = None  # the column
    header: bool = True  # csv only: the first line names the columns
    encoding: str = "utf-8"  # csv only; one of ENCODINGS
    name_timestamp: str | None = None  # a strptime pattern: the timestamp is in the file's name
    lateness_us: int = 0  # records may come so much later than newer ones without being late
    ahead_us: int | None = None  # a timestamp further ahead of its arrival is cut; default one period
    after_load: AfterLoad = "keep"


@dataclass(frozen=True, slots=True)
class Feed:
    """A source of data: files that arrive one a period, or records that can be loaded at any time."""

    name: str
    arrival: Arrival
    period_us: int | None  # always there for files
    phase_us: int = 0  # files only
    jitter_us: int = 0  # files only: a file may be this late
    timestamp_jitter_us: int = 0  # files only: a file's newest record may be this much older than its arrival
    landing: Landing = Landing()
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Table:
    """A base table (it has a feed) or a derived table (it has sources)."""

    name: str
    pool: str
    period_us: int
    feed: str | None = None
    sources: tuple[str, ...] = ()
    sql: str | None = None  # of a derived table
    select: str | None = None  # of a base table: SQL over its feed's columns
    timestamp: str | None = None  # the column; of a base table its feed's unless `select` renames it
    lookback_us: int = 0  # how far before F a derived table's SQL reads its sources
    align_us: int | None = None  # a derived table is loaded up to the edges of windows of this length
    phase_us: int = 0  # of a table that is released periodically; elsewhere 0
    target_lag_us: int | None = None
    cost: Cost | None = None
    late_after_us: int | None = None  # ΔF: a table that is behind by more is late; default its bound
    weight: Fraction = Fraction(1)  # of several late tables that could recover, the heavier goes first
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Warehouse:
    """Everything that one file defines. Tables, feeds and pools stand in the order of their definition."""

    name: str
    storage: str
    pools: Mapping[str, Pool]
    feeds: Mapping[str, Feed]
    tables: Mapping[str, Table]
    # The tables' names, every table after its sources.
    topological_order: tuple[str, ...]
    # The tables with a feed of arrival `files` somewhere upstream: they are released by paper 001's rule (4).
    released_by_files: frozenset[str] = field(default_factory=frozenset)
