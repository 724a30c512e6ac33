"""Random SQL of continuous queries over `a (ts, k, v)`, `b (ts, k, w)` and `c (ts, j, x)`.

A `right` statement uses only the operators of a query; a `wrong` one has something else.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

_COLUMNS: Final = {"a": ("ts", "k", "v"), "b": ("ts", "k", "w"), "c": ("ts", "j", "x")}
_KEYS: Final = {"a": "k", "b": "k", "c": "j"}
NUMBERS: Final = {"a": "v", "b": "w", "c": "x"}

# What queries may not have, by its place.
_WRONG: Final = {
    "columns": [
        "median(v)",
        "stddev(v)",
        "collect_list(v)",
        "first(v)",
        "count(DISTINCT v)",
        "max_by(v, ts)",
        "count_if(v > 1)",
        "median(v) FILTER (WHERE v > 2)",
        "sum(v) OVER ()",
        "max(v) / 2",
        "approx_count_distinct(v)",
        "sum(rand())",
        "max(now())",
        "min((SELECT 1))",
        "some(v > 1)",
        "percentile(v, 0.5)",
        "explode(array(v))",
        "sum(nowhere)",
        "v",
        "any_value(v)",
        "try_sum(v)",
        "row_number() OVER (ORDER BY v)",
        "max(_slice)",
        "string_agg(k)",
        "uuid()",
        "sum(:p)",
    ],
    "joins": [
        "LEFT JOIN",
        "RIGHT JOIN",
        "FULL OUTER JOIN",
        "LEFT SEMI JOIN",
        "LEFT ANTI JOIN",
        "NATURAL JOIN",
        "CROSS JOIN",
    ],
    "clauses": [
        " HAVING count(*) > 1",
        " ORDER BY k",
        " LIMIT 5",
        " SORT BY k",
        " UNION ALL SELECT k, 1 FROM a",
        " QUALIFY 1 = 1",
        " EXCEPT SELECT k, 1 FROM a",
        " LIMIT 5 OFFSET 2",
        ", ROLLUP (v)",
        " WITH CUBE",
    ],
    "tables": [
        "(SELECT * FROM a)",
        "a TABLESAMPLE (5 ROWS)",
        "a, b",
        "nowhere",
        "range(10)",
        "a LATERAL VIEW explode(array(1)) e AS y",
        "default.a",
        "a VERSION AS OF 2",
        "a x (p, q, r)",
        "VALUES (1) AS a(k)",
        "a JOIN b ON a.v < b.w",
        "a JOIN b ON a.k = b.k JOIN c ON a.k = c.j JOIN c d ON d.j = c.j",
    ],
}


@dataclass(frozen=True, slots=True)
class QueryStatement:
    """A query and its tables."""

    sql: str
    tables: tuple[str, ...]  # of its FROM, in order
    is_grouped: bool
    conditions: bool


class QueryStatements:
    """Statements from a seed."""

    def __init__(self, seed: int | str) -> None:
        self._rng = random.Random(f"query statements:{seed}")

    def right(self) -> QueryStatement:
        rng = self._rng
        tables = tuple(rng.choice("abc") for _ in range(rng.choices((1, 2, 3), (3, 3, 2))[0]))
        aliases = [f"{name}{place}" for place, name in enumerate(tables)]
        has_conditions = rng.random() < 0.5
        where = f" WHERE {self._conditions(tables, aliases)}" if has_conditions else ""
        from_ = self._from(tables, aliases)
        is_grouped = rng.random() < 0.6
        if is_grouped:
            keys = rng.sample([self._key(name, alias) for name, alias in zip(tables, aliases, strict=True)],
                              rng.randint(0, min(2, len(tables))))  # fmt: skip
            shown = rng.sample(keys, rng.randint(0, len(keys)))
            parts = [*shown, *(self._aggregate(tables, aliases) for _ in range(rng.randint(1, 3)))]
            select = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts))
            group = f" GROUP BY {', '.join(keys)}" if keys else ""
        else:
            select, group = self._columns(tables, aliases), ""
        sql = f"SELECT {select} FROM {from_}{where}{group}"
        if rng.random() < 0.3:
            sql = "".join(rng.choice((letter.upper(), letter.lower())) for letter in sql)
        return QueryStatement(sql, tables, is_grouped, has_conditions)

    def wrong(self) -> str:
        """A statement with one fault."""
        rng = self._rng
        sql = "SELECT k, sum(v) AS n FROM a WHERE v > 1 GROUP BY k"
        joined = "SELECT a.k, sum(b.w) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k"
        function, join, more, from_ = (rng.choice(_WRONG[kind]) for kind in _WRONG)
        return rng.choice(
            [
                sql.replace("sum(v)", function),
                joined.replace("JOIN", join),
                sql + more,
                sql.replace("FROM a", f"FROM {from_}"),
                sql.replace("SELECT", "SELECT DISTINCT"),
                f"WITH z AS ({sql}) SELECT k FROM z",
                sql.replace("v > 1", rng.choice(["v IN (SELECT w FROM b)", "sum(v) > 1", "ts > now()",
                                                 "EXISTS (SELECT 1 FROM b)", "rand() < 0.5", "nowhere = 1"])),
                f"({sql})",
                sql.replace("GROUP BY k", rng.choice(["GROUP BY ALL", "GROUP BY GROUPING SETS ((k), ())",
                                                      "GROUP BY v", "GROUP BY 3", "GROUP BY 2", ""])),
            ]
        )  # fmt: skip

    def _from(self, tables: tuple[str, ...], aliases: list[str]) -> str:
        rng = self._rng
        text = f"{tables[0]} {aliases[0]}"
        for place in range(1, len(tables)):
            other = rng.randrange(place)
            sides = [self._key(tables[at], aliases[at]) for at in (other, place)]
            rng.shuffle(sides)
            more = rng.choice(["", "", f" AND {self._condition(tables[place], aliases[place])}"])
            join = rng.choice(["JOIN", "INNER JOIN"])
            text += f" {join} {tables[place]} AS {aliases[place]} ON {sides[0]} = {sides[1]}{more}"
        return text

    def _conditions(self, tables: tuple[str, ...], aliases: list[str]) -> str:
        chosen = self._rng.choices(range(len(tables)), k=self._rng.randint(1, 3))
        parts = [self._condition(tables[at], aliases[at]) for at in chosen]
        return f" {self._rng.choice(['AND', 'AND', 'OR'])} ".join(parts)

    def _condition(self, table: str, alias: str) -> str:
        number = f"{alias}.{NUMBERS[table]}"
        return self._rng.choice(
            [
                f"{number} > 2",
                f"{number} BETWEEN 1 AND 5",
                f"{alias}.{_KEYS[table]} IN (1, 2)",
                f"({number} = 3)",
                f"{number} IS NOT NULL",
                f"{alias}.ts < TIMESTAMP '2026-01-01 00:00:10'",
                f"abs({number}) + 1 < 9",
            ]
        )

    def _key(self, table: str, alias: str) -> str:
        return f"{alias}.{_KEYS[table]}"

    def _aggregate(self, tables: tuple[str, ...], aliases: list[str]) -> str:
        at = self._rng.randrange(len(tables))
        number = f"{aliases[at]}.{NUMBERS[tables[at]]}"
        return self._rng.choice(
            [
                "count(*)",
                f"{self._rng.choice(['count', 'sum', 'avg', 'min', 'max'])}({number})",
                f"sum({number} * 2 + 1)",
                f"sum(CASE WHEN {number} > 1 THEN 1 ELSE 0 END)",
                f"{self._rng.choice(['count', 'sum', 'max'])}({number}) FILTER (WHERE {number} > 2)",
            ]
        )

    def _columns(self, tables: tuple[str, ...], aliases: list[str]) -> str:
        if len(tables) == 1 and self._rng.random() < 0.3:
            return "*"
        at = self._rng.randrange(len(tables))
        columns = [f"{aliases[at]}.{name}" for name in _COLUMNS[tables[at]]]
        return ", ".join(self._rng.sample(columns, self._rng.randint(1, len(columns))))
