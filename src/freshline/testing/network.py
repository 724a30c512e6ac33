"""Seeded data files of an invented network, and of a city, for demonstrations, tests and benchmarks.

    python -m freshline.testing.network --into landing --feed packets=3s --feed alerts=5s

writes until it is interrupted. A test calls `Generator.due` with its own clock instead, and `Generator.rows`
to know what must have been loaded.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from freshline.base.clock import Clock, clock
from freshline.base.duration import SECOND, parse_duration
from freshline.base.errors import InputError
from freshline.base.instants import utc
from freshline.definitions.sections.feed_entry import FileFormat

_GARBAGE: Final = b"\x00\xff\x00 this is no data file \x00\xff\x00\n" * 8
_HOSTS: Final = tuple(f"10.0.{number // 20}.{number % 20 + 1}" for number in range(60))
_ROUTERS: Final = tuple(f"router-{number:02d}" for number in range(12))
_SITES: Final = ("north", "east", "south", "west")
_DOMAINS: Final = tuple(f"{name}.example" for name in ("mail", "www", "db", "cdn", "login", "time", "files"))
_ROADS: Final = tuple(f"road-{number:02d}" for number in range(40))
_CARS: Final = tuple(f"car-{number:03d}" for number in range(500))
_GARAGES: Final = tuple(f"garage-{number}" for number in range(8))

# The values of a column: one of these words, or an integer below this number.
_Values = tuple[str, ...] | int
# By kind of feed: column, Spark type, values. Words need no quoting in any of the formats.
_KINDS: Final[Mapping[str, tuple[tuple[str, str, _Values], ...]]] = {
    "packets": (("src", "string", _HOSTS), ("dst", "string", _HOSTS), ("bytes", "long", 1_500)),
    "flows": (("src", "string", _HOSTS), ("dst", "string", _HOSTS), ("packets", "long", 10_000)),
    "alerts": (("src", "string", _HOSTS), ("router", "string", _ROUTERS), ("severity", "int", 6)),
    "routers": (("router", "string", _ROUTERS), ("site", "string", _SITES), ("load", "int", 101)),
    "dns": (("src", "string", _HOSTS), ("domain", "string", _DOMAINS), ("millis", "int", 400)),
    "counters": (("router", "string", _ROUTERS), ("octets", "long", 10**9), ("errors", "long", 40)),
    "vehicles": (("car", "string", _CARS), ("road", "string", _ROADS), ("speed", "int", 140)),
    "sensors": (("road", "string", _ROADS), ("occupancy", "int", 100)),
    "roads": (("road", "string", _ROADS), ("district", "string", _SITES), ("speed_limit", "int", 130)),
    "parking": (("garage", "string", _GARAGES), ("free", "int", 400)),
    "records": (("number", "long", 2**40), ("text", "string", 2**48)),  # all values differ: for benchmarks
}


@dataclass(frozen=True, slots=True)
class FeedSpec:
    """A feed to generate: a file every period, due at phase + k·period since the Unix epoch."""

    name: str
    format: FileFormat
    period_s: float
    rows: int
    phase_s: float = 0.0
    kind: str = ""  # the kind whose columns it has; default: its name
    outages: tuple[tuple[float, float], ...] = ()  # (silent from, back at), in seconds after the start
    late: float = 0.0  # the share of records that are up to two periods older than the file before
    corrupt: frozenset[int] = frozenset()  # the numbers of files that hold garbage

    def __post_init__(self) -> None:
        if self.period_us <= 0 or self.rows <= 0:
            what = f"feed {self.name} has a period of {self.period_s} s and {self.rows} rows in a file"
            raise InputError(what, "Both must be above zero")
        if (self.kind or self.name) not in _KINDS:
            what = f"there is no kind of feed `{self.kind or self.name}`"
            raise InputError(what, f"The kinds are {', '.join(_KINDS)}")

    @property
    def period_us(self) -> int:
        return round(self.period_s * SECOND)

    @property
    def phase_us(self) -> int:
        return round(self.phase_s * SECOND)

    @property
    def columns(self) -> tuple[tuple[str, str, _Values], ...]:
        """The columns besides the timestamp, `ts`."""
        return _KINDS[self.kind or self.name]

    @property
    def schema(self) -> str:
        """The schema as in `freshline.yml`."""
        return ", ".join(("ts timestamp", *(f"{column} {type_}" for column, type_, _ in self.columns)))


# The network of `freshline demo`.
NETWORK: Final = (
    FeedSpec("packets", "csv", 3, 600),
    FeedSpec("flows", "parquet", 3, 300, phase_s=1),
    FeedSpec("alerts", "json", 5, 40),
    FeedSpec("routers", "csv", 15, 24),
    FeedSpec("dns", "json", 4, 200, phase_s=2),
    FeedSpec("counters", "parquet", 6, 120),
)
# The city of `freshline demo --all`, which `city.yml` defines.
CITY: Final = (
    FeedSpec("vehicles", "csv", 10, 400),
    FeedSpec("sensors", "json", 10, 300, phase_s=5),
    FeedSpec("roads", "csv", 30, 40),
    FeedSpec("parking", "parquet", 15, 30),
)


class Generator:
    """Writes the data files of feeds into `folder/<feed>/`, none before it is due.

    Files of a feed are numbered from 1, the first that is due after the start. The content of a file depends
    on the seed, its feed, its number and its due time. Its name has the due time, so a generator that starts
    later never repeats a name.
    """

    def __init__(self, specs: Sequence[FeedSpec], folder: Path, seed: int, start_us: int) -> None:
        self._specs = {spec.name: spec for spec in specs}
        assert len(self._specs) == len(specs), "two feeds of one name"
        self._folder = folder
        self._seed = seed
        self._start_us = start_us
        self._next = dict.fromkeys(self._specs, 1)
        for name in self._specs:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def due(self, now_us: int) -> list[Path]:
        """Writes all files due by now that are not written yet; returns them in the order of delivery."""
        deliveries = []
        for order, name in enumerate(self._specs):
            while (at_us := self.delivered_us(name, self._next[name])) <= now_us:
                deliveries.append((at_us, order, self._next[name], name))
                self._next[name] += 1
        return [self._write(name, number) for _, _, number, name in sorted(deliveries)]

    def run(self, stop: threading.Event, clock: Clock = clock) -> None:
        """Writes every file when it is due, until `stop` is set."""
        while not stop.is_set():
            self.due(clock())
            next_us = min(self.delivered_us(name, number) for name, number in self._next.items())
            stop.wait(max(0, next_us - clock()) / SECOND)

    def numbers(self, feed: str, now_us: int) -> list[int]:
        """The numbers of a feed's files that exist by now, including corrupt ones."""
        number = 0
        while self.delivered_us(feed, number + 1) <= now_us:
            number += 1
        return list(range(1, number + 1))

    def due_us(self, feed: str, number: int) -> int:
        """When a file is due, which is also the timestamp of its newest record."""
        spec = self._specs[feed]
        since_phase_us = self._start_us - spec.phase_us
        return spec.phase_us + (since_phase_us // spec.period_us + number) * spec.period_us

    def delivered_us(self, feed: str, number: int) -> int:
        """When a file appears: at its due time, or at the end of an outage."""
        due_us = self.due_us(feed, number)
        for silent_s, back_s in self._specs[feed].outages:
            back_us = self._start_us + round(back_s * SECOND)
            if self._start_us + round(silent_s * SECOND) <= due_us < back_us:
                return back_us
        return due_us

    def path(self, feed: str, number: int) -> Path:
        due = utc(self.due_us(feed, number))
        return self._folder / feed / f"{feed}-{due:%Y%m%dT%H%M%S.%fZ}.{self._specs[feed].format}"

    def rows(self, feed: str, number: int) -> list[tuple[Any, ...]]:
        """The records of a file, with timestamps as `datetime` in UTC; empty if it is corrupt."""
        if number in self._specs[feed].corrupt:
            return []
        return list(zip(*(column.to_pylist() for column in self.table(feed, number).columns), strict=True))

    def table(self, feed: str, number: int) -> Any:
        """The records of a file as a pyarrow table, even if it is delivered corrupt."""
        spec = self._specs[feed]
        columns = {"ts": self._timestamps(spec, number)}
        for name, type_, values in spec.columns:
            limit = values if isinstance(values, int) else len(values)
            drawn = self._below(limit, spec, number, name)
            if isinstance(values, tuple):
                columns[name] = pa.array(values).take(drawn)
            elif type_ == "string":
                columns[name] = pc.binary_join_element_wise("record", drawn.cast(pa.string()), "-")
            else:
                columns[name] = drawn.cast(pa.int32() if type_ == "int" else pa.int64())
        return pa.table(columns)

    def _timestamps(self, spec: FeedSpec, number: int) -> Any:
        """Sorted timestamps in (due − period, due]; the last record is as new as the file."""
        due_us, period_us = self.due_us(spec.name, number), spec.period_us
        places = pa.array(range(spec.rows), pa.int64())
        is_last = pc.equal(places, spec.rows - 1)
        spread = pc.add(places, self._uniform(spec, number, "ts"))
        offsets = pc.add(pc.floor(pc.multiply(spread, period_us / spec.rows)).cast(pa.int64()), 1)
        offsets = pc.if_else(is_last, period_us, pc.min_element_wise(offsets, period_us))
        if spec.late:
            is_late = pc.less(self._uniform(spec, number, "late"), spec.late)
            behind = pc.negate(self._below(2 * period_us, spec, number, "late by"))
            offsets = pc.if_else(pc.and_not(is_late, is_last), behind, offsets)
        return pc.add(offsets, due_us - period_us).cast(pa.timestamp("us", "UTC"))

    def _below(self, limit: int, spec: FeedSpec, number: int, what: str) -> Any:
        return pc.floor(pc.multiply(self._uniform(spec, number, what), float(limit))).cast(pa.int64())

    def _uniform(self, spec: FeedSpec, number: int, what: str) -> Any:
        seed = crc32(f"{self._seed}/{spec.name}/{number}/{what}".encode())
        return pc.random(spec.rows, initializer=seed)

    def _write(self, feed: str, number: int) -> Path:
        path = self.path(feed, number)
        temporary = path.with_name(f".{path.name}")  # readers ignore names with a dot
        if number in self._specs[feed].corrupt:
            temporary.write_bytes(_GARBAGE)
        else:
            _WRITERS[self._specs[feed].format](self.table(feed, number), temporary)
        return temporary.replace(path)


def _iso(timestamps: Any) -> Any:
    """Like 2026-01-31T23:59:59.000001Z."""
    # `strftime` takes three times as long, which is most of the time for a file.
    texts = timestamps.cast(pa.timestamp("us")).cast(pa.string())
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")


def _write_csv(table: Any, path: Path) -> None:
    pyarrow.csv.write_csv(table.set_column(0, "ts", _iso(table["ts"])), path)


def _write_json(table: Any, path: Path) -> None:
    parts: list[Any] = ['{"ts":"', _iso(table["ts"]), '"']
    for name in table.column_names[1:]:
        quote = '"' if pa.types.is_string(table[name].type) else ""
        parts += [f',"{name}":{quote}', table[name].cast(pa.string()), quote]
    lines = pc.binary_join_element_wise(*parts, "}\n", "")
    path.write_text("".join(lines.to_pylist()), encoding="utf-8")


def _write_parquet(table: Any, path: Path) -> None:
    pyarrow.parquet.write_table(table, path)


_WRITERS: Final[Mapping[FileFormat, Callable[[Any, Path], None]]] = {
    "csv": _write_csv,
    "json": _write_json,
    "parquet": _write_parquet,
}


def _specs(feeds: Sequence[str], rows: int | None) -> list[FeedSpec]:
    """The feeds of the command line, as NAME or NAME=PERIOD; default: the whole network."""
    known = {spec.name: spec for spec in (*NETWORK, *CITY)}
    chosen = []
    for feed in feeds or [spec.name for spec in NETWORK]:
        name, _, period = feed.partition("=")
        if name not in known:
            raise InputError(f"there is no feed `{name}`", f"The feeds are {', '.join(known)}")
        spec = known[name]
        period_s = parse_duration(period) / SECOND if period else spec.period_s
        chosen.append(replace(spec, period_s=period_s, rows=rows or spec.rows))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m freshline.testing.network",
        description="Write the feeds of a made-up network, or of a city.",
    )
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="a folder for each feed here")
    parser.add_argument(
        "--feed", action="append", default=[], metavar="NAME[=PERIOD]", help="default: the whole network"
    )
    parser.add_argument("--rows", type=int, help="rows in each file")
    parser.add_argument("--for", dest="duration", metavar="DURATION", help="default: until interrupted")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        specs = _specs(arguments.feed, arguments.rows)
        seconds = parse_duration(arguments.duration) / SECOND if arguments.duration else None
    except InputError as error:
        parser.error(str(error))
    stop = threading.Event()
    if seconds is not None:
        timer = threading.Timer(seconds, stop.set)
        timer.daemon = True
        timer.start()
    try:
        Generator(specs, arguments.into, arguments.seed, clock()).run(stop)
    except OSError as error:
        parser.exit(1, f"cannot write into {arguments.into}: {error.strerror}\n")
    except KeyboardInterrupt:
        pass  # the usual way to end it


if __name__ == "__main__":
    main()
