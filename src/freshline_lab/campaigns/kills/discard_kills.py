"""Kills a runner that discards files and sheds rows, and checks that it leaves out only what it may.

One track is overloaded, so its policy discards files that would change something.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from freshline.base.instants import written
from freshline.storage.delta.stored_table import StoredTable
from freshline_lab.campaigns.kills.kills import HEAD_START_US, SendersClock, kill_often

_PERIOD_US: Final = 400_000
_SENSORS: Final = ("a", "b", "c")
_FACTOR: Final = 4  # so that no change above a quarter is ever discarded
_MOST, _PER_US = 5, 1_000_000
_PROJECT: Final = f"""\
name: left_out
storage: warehouse
pools: {{main: {{tracks: 1, policy: rds-quota}}}}
classes: {{operators: {{error: 0.3, data_error_factor: {_FACTOR}}}}}
feeds:
  levels: {{path: landing/levels, format: json, schema: "ts timestamp, sensor string, level long",
           timestamp: ts, period: 400ms}}
  cars: {{path: landing/cars, format: json, schema: "ts timestamp, car string, speed long", timestamp: ts,
         period: 400ms, shed: {{most: {_MOST}, per: 1s, value: "speed"}}}}
tables:
  every: {{feed: levels, cost: {{startup: 300ms}}}}
  few: {{feed: levels, cost: {{startup: 300ms}}, discard: {{key: sensor, value: level}}}}
  sums: {{sql: "SELECT ts, sum(level) AS level FROM few GROUP BY ts", period: 1s, cost: {{startup: 300ms}}}}
  cars: {{feed: cars, cost: {{startup: 300ms}}}}
"""
Row = tuple[int, str, int]  # instant, sensor or car, value


@dataclass(frozen=True, slots=True)
class DiscardReport:
    """The findings after the kills."""

    kills: int
    while_opening: int
    files: int
    discarded: int  # files
    discarded_changing: int  # of them: those with a change, so mwde was above 0
    largest_error: float  # weighted, over all discarded files: at most mwde, which is at most 1
    rows: dict[str, int]  # by table: the expected number
    lost: dict[str, int]
    doubled: dict[str, int]

    @property
    def exact(self) -> bool:
        return not any(self.lost.values()) and not any(self.doubled.values()) and self.largest_error <= 1


class LevelsAndCars:
    """Writes levels that mostly change little, and more cars than the feed may load."""

    def __init__(self, landing: Path, seed: int, start_us: int) -> None:
        self._landing = landing
        self._rng = random.Random(f"left out:{seed}")
        self._next_us = start_us // _PERIOD_US * _PERIOD_US
        self._levels = dict.fromkeys(_SENSORS, 10_000)

    def due(self, until_us: int) -> None:
        while self._next_us <= until_us:
            at_us, rng = self._next_us, self._rng
            largest = rng.choice((0, 0.01, 0.05, 0.15, 0.3, 2.0))
            for sensor in _SENSORS:
                changed = self._levels[sensor] * (1 + largest * rng.uniform(-0.4, 1))
                self._levels[sensor] = int(min(50_000, max(1_000, changed)))
            self._write("levels", at_us, [(at_us, each, level) for each, level in self._levels.items()])
            cars = [(at_us - rng.randrange(_PERIOD_US), f"c{k}", rng.randrange(200)) for k in range(8)]
            self._write("cars", at_us, [*cars, (at_us, "last", 0)])
            self._next_us += _PERIOD_US

    def _write(self, feed: str, at_us: int, rows: list[Row]) -> None:
        columns = ("sensor", "level") if feed == "levels" else ("car", "speed")
        path = self._landing / feed / f"{at_us}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        names = ("ts", *columns)
        lines = [json.dumps(dict(zip(names, (written(at), *rest), strict=True))) for at, *rest in rows]
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("\n".join(lines) + "\n", encoding="utf-8")
        hidden.replace(path)


def kill_and_check_left_out(folder: Path, kills: int, seed: int, run_s: tuple[float, float]) -> DiscardReport:
    """Starts and kills runners, each after a random time; then drains and checks the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "freshline.yml"
    file.write_text(_PROJECT, encoding="utf-8")
    clock = SendersClock()
    sender = LevelsAndCars(folder / "landing", seed, clock() - HEAD_START_US)
    while_opening = kill_often(file, kills, seed, run_s, sender, clock)
    return check_left_out(folder, kills, while_opening)


def check_left_out(folder: Path, kills: int, while_opening: int) -> DiscardReport:
    """Compares the tables with the landed files."""
    tables = folder / "warehouse" / "tables"
    levels, cars = (_landed(folder / "landing" / feed) for feed in ("levels", "cars"))
    consumed = _consumed(tables / "few")
    discarded = {name for name, is_discarded in consumed if is_discarded}
    errors = _errors(levels, consumed)
    few = Counter(row for name, rows in levels.items() if name not in discarded for row in rows)
    expected: dict[str, Counter[Any]] = {
        "every": Counter(row for rows in levels.values() for row in rows),
        "few": few,
        "sums": Counter(_sums(few)),
        "cars": Counter(_kept([*cars.values()])),
    }
    columns = {"cars": ["ts", "car", "speed"], "sums": ["ts", "level"]}
    found = {name: _rows(tables / name, columns.get(name, ["ts", "sensor", "level"])) for name in expected}
    # A file that was consumed twice counts as doubled, discarded or not.
    twice = sum(Counter(name for name, _ in consumed).values()) - len({name for name, _ in consumed})
    doubled = {name: (found[name] - rows).total() for name, rows in expected.items()}
    return DiscardReport(
        kills,
        while_opening,
        len(levels) + len(cars),
        len(discarded),
        sum(error > 0 for error in errors),
        max(errors, default=0.0),
        {name: rows.total() for name, rows in expected.items()},
        {name: (rows - found[name]).total() for name, rows in expected.items()},
        doubled | {"few": doubled["few"] + twice},
    )


def _landed(folder: Path) -> dict[str, list[Row]]:
    """The rows of each file, in the order of files."""
    found = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: int(path.stem)):
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        found[path.name] = [(_micros(str(at)), *rest) for at, *rest in (each.values() for each in records)]
    return found


def _micros(text: str) -> int:
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _consumed(table: Path) -> list[tuple[str, bool]]:
    """The files in a table's commits, in order, and whether they were discarded."""
    commits = StoredTable.open(table, "ts").consumed_since(-1)
    return [(file.name, file.discarded) for _, files in commits for file in files]


def _errors(files: dict[str, list[Row]], consumed: Sequence[tuple[str, bool]]) -> list[float]:
    """Of each discarded file, the weighted error of what was stored then."""
    stored: dict[str, int] = {}
    errors = []
    for name, is_discarded in consumed:
        levels = {sensor: level for _, sensor, level in files[name]}
        if is_discarded:
            changes = [
                abs(stored[sensor] - level) / stored[sensor] if sensor in stored else inf
                for sensor, level in levels.items()
            ]
            errors.append(max(changes) * _FACTOR)
        else:
            stored |= levels
    return errors


def _sums(few: Counter[Row]) -> list[tuple[int, int]]:
    sums: dict[int, int] = {}
    for (at, _, level), times in few.items():
        sums[at] = sums.get(at, 0) + level * times
    return [*sums.items()]


def _kept(files: Sequence[list[Row]]) -> list[Row]:
    """The rows kept of each window, file by file: the highest values, of equal ones the smaller rows."""
    kept: list[Row] = []
    there: Counter[int] = Counter()
    for rows in files:
        for row in sorted(rows, key=lambda row: (-row[2], row)):
            window = row[0] // _PER_US
            if there[window] < _MOST:
                there[window] += 1
                kept.append(row)
    return kept


def _rows(table: Path, columns: list[str]) -> Counter[Any]:
    data = DeltaTable(table).to_pyarrow_dataset().to_table(columns=columns)
    instants = [at.value for at in data["ts"].cast(pa.timestamp("us", "UTC"))]
    return Counter(zip(instants, *(data[column].to_pylist() for column in columns[1:]), strict=True))
