"""Random statements over `a`, `b` and `c` (ts, k, v) that grow: each step makes more of the one before.

A generated statement comes with what it certainly expands to, counted as it was written.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

_TABLES: Final = ("a", "b", "c")
_COLUMNS: Final = "ts, k, v"
# What a value of a table counts at least.
_LENGTH: Final = 10
_DOUBLING: Final = ("right({}, 9)", "nullif({}, 'x')", "CASE {} WHEN 'x' THEN 'y' WHEN 'y' THEN 'z' END")
_PLAIN: Final = ("upper({})", "trim({})", "coalesce({}, 'x')", "substring({}, 1, 9)", "reverse({})")


@dataclass(frozen=True, slots=True)
class GrownStatement:
    """A statement, and the least that it expands to."""

    sql: str
    tables: int = 1  # read, each as often as it is named
    rows: int = 1  # made of one
    characters: int = _LENGTH  # of its column `k`
    expressions: int = 1  # of its column `k`


class GrowingStatements:
    """Makes statements; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def request(self) -> GrownStatement:
        """A statement of functions that a request may use."""
        return self._statement(self._request_steps())

    def table(self) -> GrownStatement:
        """A statement that may be the SQL of a table: with functions that make rows and long texts."""
        generators = [self._explode, self._stack, self._repeat, self._pad, self._lateral]
        return self._statement([*self._request_steps(), *generators])

    def _request_steps(self) -> list[Callable[[GrownStatement], GrownStatement]]:
        return [
            self._join, self._join, self._union, self._nested, self._doubled_text, self._filtered,
            self._listed, self._subqueries, self._windows, self._cube, self._distinct,
            self._named_in_turn, self._sliding,
        ]  # fmt: skip

    def _statement(self, steps: list[Callable[[GrownStatement], GrownStatement]]) -> GrownStatement:
        few = self._random.sample(steps, self._random.randint(1, 4))
        grown = GrownStatement("")
        texts = [f"c0 AS (SELECT {_COLUMNS} FROM {self._table()})"]
        for number in range(1, self._many(26) + 1):
            grown = self._random.choice(few)(replace(grown, sql=f"c{number - 1}"))
            texts.append(f"c{number} AS ({grown.sql})")
        width = self._many(6)
        star = ", ".join(["x.*"] * width)
        last = f"SELECT count(*) AS n FROM (SELECT {star} FROM c{len(texts) - 1} x) y"
        if self._random.random() < 0.5:
            last = f"SELECT k, v FROM c{len(texts) - 1} WHERE k > 'm' ORDER BY k, v LIMIT 10"
        return replace(grown, sql=f"WITH {', '.join(texts)} {last}")

    def _table(self) -> str:
        return self._random.choice(_TABLES)

    def _many(self, most: int) -> int:
        """Often few, at times many."""
        return int(most ** self._random.random())

    # -- steps: each makes a query over the relation that the one before is called ---------------------------

    def _join(self, of: GrownStatement) -> GrownStatement:
        count = self._many(4) + 1
        joins = " ".join(f"JOIN {of.sql} x{at} ON x{at}.k = x0.k" for at in range(1, count))
        sql = f"SELECT x0.ts, x0.k, x0.v FROM {of.sql} x0 {joins}"
        return replace(of, sql=sql, tables=of.tables * count, rows=of.rows**count)

    def _union(self, of: GrownStatement) -> GrownStatement:
        count = self._many(12) + 1
        sql = " UNION ALL ".join([f"SELECT {_COLUMNS} FROM {of.sql}"] * count)
        return replace(of, sql=sql, tables=of.tables * count, rows=of.rows * count)

    def _nested(self, of: GrownStatement) -> GrownStatement:
        text, size = "k", of.expressions
        for _ in range(self._many(16)):
            is_doubling = self._random.random() < 0.5
            text = self._random.choice(_DOUBLING if is_doubling else _PLAIN).format(text)
            size *= 2 if is_doubling else 1
        return replace(of, sql=f"SELECT ts, {text} AS k, v FROM {of.sql}", expressions=size)

    def _doubled_text(self, of: GrownStatement) -> GrownStatement:
        count = self._many(4) + 1
        text = "concat(" + ", ".join(["k"] * count) + ")"
        sql = f"SELECT ts, {text} AS k, v FROM {of.sql}"
        return replace(of, sql=sql, characters=of.characters * count, expressions=of.expressions * count)

    def _filtered(self, of: GrownStatement) -> GrownStatement:
        conditions = " OR ".join(f"(v > {at} AND k <> 'x{at}')" for at in range(self._many(300)))
        return replace(of, sql=f"SELECT {_COLUMNS} FROM {of.sql} WHERE {conditions}")

    def _listed(self, of: GrownStatement) -> GrownStatement:
        listed = ", ".join(f"'id{at}'" for at in range(self._many(3_000)))
        return replace(of, sql=f"SELECT {_COLUMNS} FROM {of.sql} WHERE k IN ({listed})")

    def _subqueries(self, of: GrownStatement) -> GrownStatement:
        count = self._many(12)
        kinds = ("EXISTS (SELECT 1 FROM {0} y WHERE y.k = x.k)", "x.k IN (SELECT k FROM {0})",
                 "x.v < (SELECT max(v) FROM {0})")  # fmt: skip
        conditions = " AND ".join(self._random.choice(kinds).format(of.sql) for _ in range(count))
        sql = f"SELECT x.ts, x.k, x.v FROM {of.sql} x WHERE {conditions}"
        return replace(of, sql=sql, tables=of.tables * (count + 1))

    def _windows(self, of: GrownStatement) -> GrownStatement:
        sums = " + ".join(f"sum(v) OVER (PARTITION BY k, v + {at})" for at in range(self._many(30)))
        return replace(of, sql=f"SELECT ts, k, {sums} AS v FROM {of.sql}")

    def _cube(self, of: GrownStatement) -> GrownStatement:
        count = self._many(20)
        keys = ", ".join(["k", *(f"v + {at}" for at in range(1, count))])
        sql = f"SELECT max(ts) AS ts, k, count(*) AS v FROM {of.sql} GROUP BY CUBE ({keys})"
        return replace(of, sql=sql, rows=of.rows * 2**count, expressions=1)

    def _distinct(self, of: GrownStatement) -> GrownStatement:
        count = self._many(40)
        counts = " + ".join(f"count(DISTINCT v + {at})" for at in range(count))
        sql = f"SELECT max(ts) AS ts, k, {counts} AS v FROM {of.sql} GROUP BY k"
        return replace(of, sql=sql)

    def _named_in_turn(self, of: GrownStatement) -> GrownStatement:
        """Columns that are made of the one before, in one SELECT."""
        count = self._many(20)
        named = ", ".join(f"concat(k{at - 1}, k{at - 1}) AS k{at}" for at in range(1, count + 1))
        sql = f"SELECT ts, k{count} AS k, v FROM (SELECT ts, k AS k0, v, {named} FROM {of.sql})"
        return replace(
            of, sql=sql, characters=of.characters * 2**count, expressions=of.expressions * 2**count
        )

    def _sliding(self, of: GrownStatement) -> GrownStatement:
        overlap = self._many(3_000)
        window = f"window(ts, '{overlap} seconds', '1 second')"
        sql = f"SELECT max(ts) AS ts, k, count(*) AS v FROM {of.sql} GROUP BY k, {window}"
        return replace(of, sql=sql, rows=of.rows * overlap)

    def _explode(self, of: GrownStatement) -> GrownStatement:
        count = self._many(10**7)
        sql = f"SELECT ts, k, explode(sequence(1, {count})) AS v FROM {of.sql}"
        return replace(of, sql=sql, rows=of.rows * count)

    def _lateral(self, of: GrownStatement) -> GrownStatement:
        count = self._many(10**5)
        sql = f"SELECT ts, k, e AS v FROM {of.sql} LATERAL VIEW explode(array_repeat(1, {count})) t AS e"
        return replace(of, sql=sql, rows=of.rows * count)

    def _stack(self, of: GrownStatement) -> GrownStatement:
        count = self._many(50)
        values = ", ".join(map(str, range(count)))
        sql = f"SELECT x.ts, x.k, s.e AS v FROM {of.sql} x, LATERAL stack({count}, {values}) s(e)"
        return replace(of, sql=sql, rows=of.rows * count)

    def _repeat(self, of: GrownStatement) -> GrownStatement:
        count = self._many(10**5)
        return replace(
            of, sql=f"SELECT ts, repeat(k, {count}) AS k, v FROM {of.sql}", characters=of.characters * count
        )

    def _pad(self, of: GrownStatement) -> GrownStatement:
        count, side = self._many(10**9), self._random.choice(("lpad", "rpad"))
        sql = f"SELECT ts, {side}(k, {count}, 'x') AS k, v FROM {of.sql}"
        return replace(of, sql=sql, characters=max(of.characters, count))
