"""A city with six feeds and all kinds of work on two nodes, and its rows computed without Spark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from freshline.base.duration import SECOND
from freshline.base.instants import utc
from freshline.storage.control.layout import StorageLayout
from freshline.testing.network import FeedSpec, Generator

Row = tuple[Any, ...]
NODES: Final = ("centre", "edge")
FEEDS: Final = (
    FeedSpec("vehicles", "csv", 15, 400),
    FeedSpec("sensors", "json", 15, 300, phase_s=5),
    FeedSpec("incidents", "json", 20, 60, phase_s=2, kind="alerts"),
    FeedSpec("roads", "csv", 30, 60),
    FeedSpec("buses", "csv", 20, 200, phase_s=9, kind="vehicles"),
    FeedSpec("parking", "parquet", 20, 40, phase_s=13),
)
DISCARDING: Final = "parking"
_FRESHNESS: Final = "freshline.freshness"
_CAR: Final = ("ts", "car", "road", "speed")
COLUMNS: Final = {
    "vehicles": _CAR,
    "sensors": ("ts", "road", "occupancy"),
    "incidents": ("ts", "src", "router", "severity"),
    "roads": ("ts", "road", "district", "speed_limit"),
    "buses": _CAR,
    "parking": ("ts", "garage", "free"),
    "speeding": _CAR,
    "jams": ("ts", "road", "occupancy"),
    "severe": ("ts", "src", "router"),
    "flow": ("ts", "road", "cars", "speed"),
    "fast": _CAR,
}
_SHED_MOST: Final = 200
_SHED_PER_US: Final = 15 * SECOND
_FLOW_US: Final = 20 * SECOND


def write_city(folder: Path) -> Path:
    """Writes the project into a folder; returns its file."""
    for spec in FEEDS:
        (folder / "landing" / spec.name).mkdir(parents=True)
    file = folder / "freshline.yml"
    text = files("freshline_lab.campaigns.promises").joinpath("city.yml").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    return file


def specs(down: str, outage: tuple[float, float]) -> list[FeedSpec]:
    """The feeds, one of them with an outage."""
    return [replace(spec, outages=(outage,)) if spec.name == down else spec for spec in FEEDS]


class CityRows:
    """What the tables must have of the files written until an instant."""

    def __init__(self, generator: Generator, until: int) -> None:
        self.files = {
            spec.name: [generator.rows(spec.name, each) for each in generator.numbers(spec.name, until)]
            for spec in FEEDS
        }

    def expected(self, table: str, freshness: int) -> Counter[Row]:
        """The rows of a table that is as fresh as that."""
        make: Callable[[], Iterable[Row]] = {
            "sensors": self._sensors,
            "speeding": lambda: (row for row in self._loaded("vehicles") if row[3] > 130),
            "jams": lambda: (row for row in self._sensors() if row[2] > 90),
            "severe": lambda: (row[:3] for row in self._loaded("incidents") if row[3] == 5),
            "flow": lambda: self._flow(freshness),
            "fast": lambda: self._fast(freshness),
        }.get(table, lambda: self._loaded(table))
        return Counter(make())

    def _loaded(self, feed: str) -> Iterator[Row]:
        return (row for file in self.files[feed] for row in file)

    def _sensors(self) -> Iterator[Row]:
        """Of each window the fullest roads, with those counted that files before brought."""
        kept: Counter[int] = Counter()
        for file in self.files["sensors"]:
            in_order = sorted(file, key=lambda row: (_instant(row) // _SHED_PER_US, -row[2], *row))
            for window, rows in groupby(in_order, key=lambda row: _instant(row) // _SHED_PER_US):
                chosen = list(rows)[: max(0, _SHED_MOST - kept[window])]
                kept[window] += len(chosen)
                yield from chosen

    def _flow(self, freshness: int) -> Iterator[Row]:
        """Windows that are complete up to there."""
        speeds: dict[tuple[int, str], list[int]] = defaultdict(list)
        for row in self._loaded("vehicles"):
            start = _instant(row) // _FLOW_US * _FLOW_US
            if start + _FLOW_US - 1 <= freshness:
                speeds[start, row[2]].append(row[3])
        for (start, road), found in speeds.items():
            yield utc(start), road, len(found), sum(found)

    def _fast(self, freshness: int) -> Iterator[Row]:
        for feed in ("vehicles", "buses"):
            yield from (row for row in self._loaded(feed) if row[3] > 120 and _instant(row) <= freshness)

    def compare(self, folder: Path) -> Iterator[tuple[str, int, int, int]]:
        """By table: the rows that are expected, lost and doubled. Whole discarded files are not lost."""
        for table in COLUMNS:
            found, freshness = stored(folder, table)
            expected = self.expected(table, freshness)
            if table == DISCARDING:
                there = [Counter(file) for file in self.files[table] if found & Counter(file)]
                expected = sum(there, Counter())
            yield table, expected.total(), (expected - found).total(), (found - expected).total()

    def discarded(self, folder: Path) -> int:
        """How many files of the table that discards are not there."""
        found, _ = stored(folder, DISCARDING)
        return sum(not found & Counter(file) for file in self.files[DISCARDING])


def stored(folder: Path, table: str) -> tuple[Counter[Row], int]:
    """The rows of a table, and how fresh it is."""
    delta = DeltaTable(StorageLayout(folder / "warehouse").table(table))
    data = delta.to_pyarrow_dataset().to_table(columns=list(COLUMNS[table]))
    rows = Counter(zip(*(data[column].to_pylist() for column in COLUMNS[table]), strict=True))
    return rows, delta.transaction_version(_FRESHNESS) or 0


def _instant(row: Row) -> int:
    since: timedelta = row[0] - utc(0)
    return since // timedelta(microseconds=1)
