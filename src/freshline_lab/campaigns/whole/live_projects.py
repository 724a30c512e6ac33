"""Random whole warehouses that run on Spark, and the rows that they must have, computed without Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from freshline.base.duration import SECOND
from freshline.base.instants import utc
from freshline.definitions.sections.feed_entry import FileFormat
from freshline.testing.network import FeedSpec, Generator
from freshline_lab.campaigns.whole.entries import Entry, sources_of, written

# A row of every feed and of most tables: the timestamp, the source, the destination and the bytes.
Row = tuple[Any, ...]
_SELECT: Final = "SELECT ts, src, dst, bytes FROM {}"
_LARGE: Final = " WHERE bytes > 700"
_SUMS: Final = "SELECT ts, src, sum(bytes) AS bytes FROM {} GROUP BY ts, src"
_POLICIES: Final = ("edf", "clustered-edf", "aus", "aus-slack", "fifo", "rm", "prp", "rds-quota")


@dataclass(frozen=True, slots=True)
class LiveProject:
    """A project: its file, and the feeds that are generated for it."""

    document: Entry
    feeds: tuple[FeedSpec, ...]

    @property
    def tables(self) -> Entry:
        return self.document["tables"]  # type: ignore[no-any-return]

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for feed in self.feeds:
            (folder / "landing" / feed.name).mkdir(parents=True, exist_ok=True)
        file = folder / "freshline.yml"
        file.write_text(written(self.document), encoding="utf-8")
        return file

    def columns(self, table: str) -> list[str]:
        """The columns that are compared."""
        sums = "sum(" in self.tables[table].get("sql", "")
        return ["ts", "src", "bytes"] if sums else ["ts", "src", "dst", "bytes"]

    def rows(self, table: str, generator: Generator, until_us: int) -> Counter[Row]:
        """The rows of a table that has all files written by then, however fresh it is."""
        entry = self.tables[table]
        if "feed" in entry:
            feed, numbers = entry["feed"], generator.numbers(entry["feed"], until_us)
            files = [generator.rows(feed, number) for number in numbers]
            shed = self.document["feeds"][feed].get("shed")
            return Counter(row for file in (files if shed is None else _shed(files, shed)) for row in file)
        found: Counter[Row] = Counter()
        for source in sources_of(entry["sql"]):
            found += self.rows(source, generator, until_us)
        if "sum(" in entry["sql"]:
            return _sums(found)
        if _LARGE in entry["sql"]:
            return Counter({row: count for row, count in found.items() if row[3] > 700})
        return found


def live_project(seed: int) -> LiveProject:
    """Tables, queries, classes and outputs on this machine, or on one or two nodes of it."""
    rng = random.Random(f"live:{seed}")
    nodes = [f"node{number}" for number in range(rng.choice((0, 1, 2)))]
    document: Entry = {"name": f"live_{seed}", "storage": "warehouse"}
    if nodes:
        document["nodes"] = {name: {"master": "local[1]"} for name in nodes}
    document["pools"] = {"updates": {"tracks": 2, "policy": rng.choice(_POLICIES)}}
    document |= {"feeds": {}, "tables": {}}
    specs = [_add_base(rng, document, f"t{number}", nodes) for number in range(rng.randint(1, 2))]
    if nodes:
        specs += _add_outputs(rng, document, nodes)
    _add_derived(rng, document)
    if rng.random() < 0.7:
        _add_queries(rng, document)
    if rng.random() < 0.7:
        _add_classes(rng, document)
    return LiveProject(document, tuple(specs))


def _add_base(rng: random.Random, document: Entry, name: str, nodes: list[str]) -> FeedSpec:
    spec = _spec(rng, name)
    document["feeds"][name] = _feed(rng, spec, nodes[0] if nodes else None)
    entry: Entry = {"feed": name, "pool": "updates", "slices": {"by": "src"}, "cost": {"startup": "900ms"}}
    sheds = "shed" in document["feeds"][name]
    if document["pools"]["updates"]["policy"] == "rds-quota" and not sheds and rng.random() < 0.5:
        entry["discard"] = {"key": "src", "value": "bytes"}
    document["tables"][name] = entry
    return spec


def _spec(rng: random.Random, name: str) -> FeedSpec:
    period_s = rng.choice((3, 4, 6))
    formats: tuple[FileFormat, ...] = ("csv", "json", "parquet")
    return FeedSpec(
        name, rng.choice(formats), period_s, rng.choice((20, 200)), rng.choice((0, 0.5)), kind="packets"
    )


def _feed(rng: random.Random, spec: FeedSpec, node: str | None) -> Entry:
    entry: Entry = {"path": f"landing/{spec.name}", "format": spec.format, "schema": spec.schema}
    entry |= {"timestamp": "ts", "period": f"{spec.period_us}us", "rows": spec.rows / spec.period_s}
    if node is not None:
        entry["node"] = node
    if rng.random() < 0.3:
        entry["shed"] = {"most": 7, "per": "1s", "value": "bytes"}
    return entry


def _add_outputs(rng: random.Random, document: Entry, nodes: list[str]) -> list[FeedSpec]:
    spec = _spec(rng, "s0")
    document["feeds"]["s0"] = {**_feed(rng, spec, rng.choice(nodes)), "age": f"{spec.period_us}us"}
    steps: Entry = {"s0": {"feed": "s0"}, "s1": {"sql": _SELECT.format("s0") + _LARGE}}
    if rng.random() < 0.6:
        steps["s2"] = {"sql": _SELECT.format("s1"), "node": rng.choice(nodes)}
    for entry in steps.values():
        entry["cost"] = {"startup": "500ms"}
    steps[list(steps)[-1]]["deadline"] = "25s"
    document["tables"] |= steps
    return [spec]


def _add_derived(rng: random.Random, document: Entry) -> None:
    tables = document["tables"]
    whole = [name for name, entry in tables.items() if "discard" not in entry]
    for number in range(rng.randint(1, 2)):
        read = rng.sample(whole, min(len(whole), rng.choice((1, 1, 2))))
        if not read:
            return
        sql = " UNION ALL ".join(_SELECT.format(source) for source in read)
        if len(read) == 1:
            sql = rng.choice((sql, sql + _LARGE, _SUMS.format(read[0])))
        tables[f"d{number}"] = {
            "sql": sql, "pool": "updates", "period": rng.choice(("3s", "5s")), "cost": {"startup": "900ms"},
        }  # fmt: skip


def _add_queries(rng: random.Random, document: Entry) -> None:
    document["pools"]["answers"] = {"tracks": 1, "policy": rng.choice(("lrm", "rm"))}
    document["queries"] = {
        f"q{number}": {
            "sql": "SELECT src, sum(bytes) AS bytes FROM t0 GROUP BY src",
            "pool": "answers",
            "window": "6s",
            "stride": rng.choice(("4s", "6s")),
            "cost": {"startup": "300ms", "rate": 0.02},
        }
        for number in range(rng.randint(1, 2))
    }


def _add_classes(rng: random.Random, document: Entry) -> None:
    shared = document["pools"]["updates"]["policy"] == "rds-quota" and rng.random() < 0.5
    if not shared:
        document["pools"]["asked"] = {"tracks": 1, "policy": rng.choice(("rds-quota", "rds-edf"))}
    pool = "updates" if shared else "asked"
    document["classes"] = {
        name: {"error": error, "pool": pool} for name, error in (("operators", 0.2), ("guests", 0.5))
    }


def _shed(files: Iterable[list[Row]], shed: Entry) -> Iterable[list[Row]]:
    """What is left of each file: the largest values of each second, with those of files before counted."""
    kept: Counter[int] = Counter()
    for file in files:
        left: list[Row] = []
        in_order = sorted(file, key=lambda row: (_second(row[0]), -row[3], *row))
        for second, rows in groupby(in_order, key=lambda row: _second(row[0])):
            room = shed["most"] - kept[second]
            chosen = list(rows)[: max(0, room)]
            kept[second] += len(chosen)
            left += chosen
        yield left


def _second(at: datetime) -> int:
    return int((at - utc(0)).total_seconds() * SECOND // SECOND)


def _sums(rows: Counter[Row]) -> Counter[Row]:
    sums: dict[tuple[Any, Any], int] = {}
    for (at, source, _, size), times in rows.items():
        sums[at, source] = sums.get((at, source), 0) + size * times
    return Counter((at, source, size) for (at, source), size in sums.items())
