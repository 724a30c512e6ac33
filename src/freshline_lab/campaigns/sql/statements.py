"""Random SQL over two tables, `a (ts, k, v)` and `b (at, k, w)`: common statements and wrong ones.

Nearly all are valid for Spark, whether or not a derived table can be kept by them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_TABLES: Final = {
    "a": {"ts": "time", "k": "key", "v": "number"},
    "b": {"at": "time", "k": "key", "w": "number"},
}
_SECONDS: Final = (1, 2, 3, 5, 6, 10)
_LITERAL: Final = "TIMESTAMP '2026-01-01 00:00:10'"


@dataclass(frozen=True, slots=True)
class _Source:
    """Something to read: a table or a query, and its columns by kind."""

    text: str
    columns: dict[str, str]


class Statements:
    """Statements from a seed; each has a timestamp column `ts`."""

    def __init__(self, seed: int | str) -> None:
        self._rng = random.Random(f"statements:{seed}")
        self._number = 0  # of the last alias

    def next(self) -> str:
        self._number = 0
        return self._query(2).text

    def _query(self, depth: int) -> _Source:
        """A query with the columns ts, k and n."""
        rng = self._rng
        kind = rng.choices(
            ["select", "group", "distinct", "ranked", "join", "union", "with"], [4, 5, 1, 2, 6, 2, 2]
        )[0]
        if depth == 0 and kind in ("union", "with"):
            kind = "select"
        text = {
            "select": self._select,
            "group": self._group,
            "distinct": self._distinct,
            "ranked": self._ranked,
            "join": self._join,
            "union": self._union,
            "with": self._with,
        }[kind](depth)
        return _Source(text, {"ts": "time", "k": "key", "n": "number"})

    def _source(self, depth: int) -> _Source:
        if depth > 0 and self._rng.random() < 0.5:
            inner = self._query(depth - 1)
            return _Source(f"({inner.text})", inner.columns)
        name = self._rng.choice("ab")
        return _Source(name, _TABLES[name])

    def _alias(self) -> str:
        self._number += 1
        return f"r{self._number}"

    def _select(self, depth: int) -> str:
        source, alias = self._source(depth), self._alias()
        columns = _of(source, alias)
        time = self._time(columns["time"], self._rng.choice([0, 0, 1, 1, 2]))
        more = self._rng.choice(["", "", f" LATERAL VIEW explode(array(1, 2)) {alias}x AS x{alias}"])
        return (
            f"SELECT {time} AS ts, {columns['key']} AS k, {columns['number']} AS n "
            f"FROM {source.text} {alias}{more}{self._where(columns)}"
        )

    def _group(self, depth: int) -> str:
        rng = self._rng
        source, alias = self._source(depth), self._alias()
        columns = _of(source, alias)
        key = self._time(columns["time"], rng.choice([1, 1, 1, 0, 2]))
        out = rng.choice([key] * 6 + [f"max({columns['time']})", f"min({columns['time']})"])
        out = rng.choice([out] * 6 + [self._wrapped(out)])
        count = rng.choice(["count(*)", f"sum({columns['number']})", f"max({columns['number']})"])
        by = rng.choice(
            [f"{key}, {columns['key']}"] * 16
            + [f"{key}, ROLLUP ({columns['key']})", f"{key}, {columns['key']} WITH ROLLUP"]
            + [f"{key}, {columns['key']} WITH CUBE", f"CUBE ({key}, {columns['key']})"]
            + [f"GROUPING SETS (({key}), ({key}, {columns['key']}))", columns["key"]]
        )
        having = rng.choice(["", "", "", " HAVING count(*) > 1"])
        return (
            f"SELECT {out} AS ts, {columns['key']} AS k, {count} AS n "
            f"FROM {source.text} {alias}{self._where(columns)} GROUP BY {by}{having}"
        )

    def _distinct(self, depth: int) -> str:
        source, alias = self._source(depth), self._alias()
        columns = _of(source, alias)
        time = self._time(columns["time"], self._rng.choice([0, 1, 1]))
        return f"SELECT DISTINCT {time} AS ts, {columns['key']} AS k, 1 AS n FROM {source.text} {alias}"

    def _ranked(self, depth: int) -> str:
        """A window function that does not depend on the order of equal rows."""
        rng = self._rng
        source, alias = self._source(depth), self._alias()
        columns = _of(source, alias)
        partition = rng.choice([self._time(columns["time"], 1)] * 5 + [columns["key"]])
        call = rng.choice(["count(*)", f"max({columns['number']})", f"sum({columns['number']})"])
        order = rng.choice(["", f" ORDER BY {columns['time']}"])
        over = f"{call} OVER (PARTITION BY {partition}{order})"
        out = self._time(columns["time"], rng.choice([0, 0, 0, 1]))
        if rng.random() < 0.3:
            last = f" QUALIFY {columns['number']} = max({columns['number']}) OVER (PARTITION BY {partition})"
            return (
                f"SELECT {out} AS ts, {columns['key']} AS k, {columns['number']} AS n "
                f"FROM {source.text} {alias}{last}"
            )
        return f"SELECT {out} AS ts, {columns['key']} AS k, {over} AS n FROM {source.text} {alias}"

    def _join(self, depth: int) -> str:
        rng = self._rng
        left, right = self._source(depth), self._source(depth)
        one, other = self._alias(), self._alias()
        first, second = _of(left, one), _of(right, other)
        kind = rng.choices(["JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "LEFT JOIN"], [8, 1, 1, 0.3])[0]
        near = self._near(first["time"], second["time"])
        if kind != "JOIN" and rng.random() < 0.7:
            edge = self._windowed("?")
            near = " = ".join(edge.replace("?", side["time"]) for side in (first, second))
        same = rng.choice([f"{first['key']} = {second['key']} AND ", ""])
        if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            time, number = first["time"], first["number"]
        else:
            time = rng.choice([f"greatest({first['time']}, {second['time']})"] * 5 + [first["time"]])
            time = rng.choice([time, time, self._time(time, 1)])
            number = f"{first['number']} + {second['number']}"
        from_ = f"FROM {left.text} {one} {kind} {right.text} {other} ON {same}{near}"
        if rng.random() < 0.25:
            return (
                f"SELECT {time} AS ts, {first['key']} AS k, sum({number}) AS n {from_} "
                f"GROUP BY {time}, {first['key']}"
            )
        if kind == "JOIN" and rng.random() < 0.2:
            third, another = self._source(0), self._alias()
            others = _of(third, another)
            near = self._near(rng.choice([first["time"], second["time"], time]), others["time"])
            from_ += f" JOIN {third.text} {another} ON {near}"
            time = rng.choice([f"greatest({time}, {others['time']})"] * 3 + [time])
        return f"SELECT {time} AS ts, {first['key']} AS k, {number} AS n {from_}"

    def _union(self, depth: int) -> str:
        how = self._rng.choices(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "EXCEPT ALL"], [4, 2, 1, 1, 1])[
            0
        ]
        return f"({self._query(depth - 1).text}) {how} ({self._query(depth - 1).text})"

    def _with(self, depth: int) -> str:
        name = self._alias()
        inner, alias = self._query(depth - 1), self._alias()
        columns = {"time": f"{alias}.ts", "key": f"{alias}.k", "number": f"{alias}.n"}
        time = self._time(columns["time"], self._rng.choice([0, 1]))
        if self._rng.random() < 0.5:
            return (
                f"WITH {name} AS ({inner.text}) SELECT {time} AS ts, {alias}.k, count(*) AS n "
                f"FROM {name} {alias} GROUP BY {time}, {alias}.k"
            )
        other = self._alias()
        near = self._near(columns["time"], f"{other}.ts")
        return (
            f"WITH {name} AS ({inner.text}) SELECT greatest({alias}.ts, {other}.ts) AS ts, {alias}.k, "
            f"{alias}.n + {other}.n AS n FROM {name} {alias} JOIN {name} {other} ON {near}"
        )

    def _where(self, columns: dict[str, str]) -> str:
        return self._rng.choice(
            ["", "", f" WHERE {columns['number']} > 2", f" WHERE {columns['time']} < {_LITERAL}"]
        )

    def _time(self, time: str, depth: int) -> str:
        """A timestamp computed from another."""
        for _ in range(depth):
            time = self._rng.choice([self._windowed] * 6 + [self._wrapped])(time)
        return time

    def _windowed(self, time: str) -> str:
        """An expression that usually is a window's edge."""
        rng = self._rng
        length = rng.choice(_SECONDS)
        seconds = self._seconds(time)
        return rng.choice(
            [
                f"date_trunc('{rng.choice(['second', 'minute', 'MILLISECOND', 'hour'])}', {time})",
                f"window({time}, '{length} seconds').start",
                f"timestamp_seconds(floor({seconds} / {length}) * {length})",
                f"timestamp_seconds({seconds} DIV {length} * {length})",
                f"CAST({seconds} AS timestamp)",
                f"to_timestamp(from_unixtime({seconds} DIV {length} * {length}))",
                f"timestamp_millis(unix_millis({time}) DIV {length}00 * {length}00)",
                f"timestamp_seconds(CAST({seconds} / {length} AS bigint) * {length})",
                f"CAST(CAST({time} AS date) AS timestamp)",
            ]
        )

    def _wrapped(self, time: str) -> str:
        """An expression that often is no window's edge."""
        rng = self._rng
        length = rng.choice(_SECONDS)
        seconds = self._seconds(time)
        return rng.choice(
            [
                f"window({time}, '{length} seconds').end",
                f"{time} {rng.choice('+-')} INTERVAL {length} SECONDS",
                f"timestamp_seconds({seconds} {rng.choice('+-')} {length})",
                f"timestamp_seconds(ceil({seconds} / {length}) * {length})",
                f"timestamp_seconds(round({seconds} / {length}) * {length})",
                f"timestamp_seconds(floor(({seconds} + {length}) / {length}) * {length} - {length})",
                f"timestamp_seconds(({seconds} - {length}) DIV {length} * {length} + {length})",
                f"timestamp_seconds(unix_timestamp({_LITERAL}) * 2 - {seconds})",
                f"timestamp_seconds({seconds} - {seconds} % {length})",
                f"least({time}, {_LITERAL})",
                f"greatest({time}, {_LITERAL})",
                f"coalesce({time}, {_LITERAL})",
                f"CASE WHEN second({time}) > 20 THEN {time} ELSE date_trunc('minute', {time}) END",
                f"CAST(CAST({time} AS double) AS timestamp)",
                f"timestamp_millis(unix_millis({time}))",
                f"timestamp_seconds({length} * floor(unix_micros({time}) / {length}000000))",
            ]
        )

    def _seconds(self, time: str) -> str:
        return self._rng.choice(
            [f"unix_timestamp({time})", f"unix_seconds({time})", f"CAST({time} AS bigint)"]
        )

    def _near(self, one: str, other: str) -> str:
        """A condition on two timestamps."""
        rng = self._rng
        less, more = (rng.choice([0, 1, 2, 4]) for _ in range(2))
        length = rng.choice(_SECONDS)
        below, above = rng.choice(["<", "<="]), rng.choice([">", ">="])
        difference = f"{self._seconds(one)} - {self._seconds(other)}"
        same = self._windowed("?")
        return rng.choice(
            [
                f"{one} = {other}",
                f"{one} BETWEEN {other} - INTERVAL {length} SECONDS AND {other}",
                f"{one} BETWEEN {other} AND {other} + INTERVAL {length} SECONDS",
                f"{same.replace('?', one)} = {same.replace('?', other)}",
                f"{self._time(one, 1)} = {self._time(other, 1)}",
                f"{one} BETWEEN {other} - INTERVAL {less} SECONDS AND {other} + INTERVAL {more} SECONDS",
                f"{one} {above} {other} - INTERVAL {less} SECONDS AND {one} {below} {other}",
                f"{one} - {other} BETWEEN INTERVAL -{less} SECONDS AND INTERVAL {more} SECONDS",
                f"abs({one} - {other}) {below} INTERVAL {length} SECONDS",
                f"abs({difference}) {below} {length}",
                f"{difference} BETWEEN -{less} AND {more}",
                f"{same.replace('?', one)} BETWEEN {other} - INTERVAL {length} SECONDS AND {other}",
                f"{one} = {other} + INTERVAL {length} SECONDS",
                f"{self._time(one, 1)} {below} {other} AND {one} {above} {other} - INTERVAL {length} SECONDS",
                f"{one} {below} {other}",
                f"({one} = {other} OR {one} {above} {other})",
                f"abs(timestampdiff(SECOND, {one}, {other})) {below} {length}",
                f"second({one}) = second({other})",
            ]
        )


def _of(source: _Source, alias: str) -> dict[str, str]:
    """The source's columns by kind, under its alias."""
    return {kind: f"{alias}.{name}" for name, kind in source.columns.items()}
