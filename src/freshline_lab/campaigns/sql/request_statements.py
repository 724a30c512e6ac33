"""Random SQL of requests over `a (ts, k, v)`, `b (ts, k, w)` and `c (ts, j, x)`.

A `right` statement is answered, in parts or whole, as Spark answers it; a `wrong` one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from freshline_lab.campaigns.sql.query_statements import NUMBERS, QueryStatements

_SCATTERS: Final = ("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop", "std")
_HAVING: Final = (
    "count(*) > 1",
    "sum({number}) >= 10",
    "avg({number}) < 5.5",
    "max({number}) IS NOT NULL",
    "count(*) BETWEEN 1 AND 20 OR sum({number}) IS NULL",
    "NOT (min({number}) > 2 AND count(*) <> 3)",
    "count({number}) > -1e0",
)
# Answered whole, in one part.
_WHOLE: Final = (
    "SELECT DISTINCT k FROM a",
    "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, ts) AS n FROM a",
    "SELECT k, count(*) AS n FROM a WHERE v > (SELECT avg(w) FROM b) GROUP BY k",
    "WITH big AS (SELECT k, sum(v) AS s FROM a GROUP BY k) SELECT count(*), max(s) FROM big",
    "SELECT k, sum(v) / count(*) AS m FROM a GROUP BY k",
    "SELECT count(DISTINCT v), sum(DISTINCT v) FROM a",
    "SELECT a.k, count(b.w) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k",
    "SELECT k, count(*) AS n FROM a GROUP BY ROLLUP (k)",
    "SELECT k FROM a WHERE k IN (SELECT j FROM c)",
    "SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT sum(v) FILTER (WHERE v > 1) AS s FROM a",
    "SELECT k, count(*) AS n FROM a GROUP BY k HAVING sum(v) + count(*) > 3",
    "SELECT * FROM a",
    "SELECT upper(concat('k', k)) AS t, round(abs(v), 1) AS r FROM a WHERE k IS NOT NULL",
    "SELECT n FROM (SELECT k, count(*) AS n FROM a GROUP BY k UNION ALL SELECT j, 0 FROM c) AS both",
    "SELECT approx_count_distinct(k) AS n, max_by(v, ts) AS last FROM a",
)
# Refused, by error code.
_WRONG: Final = {
    "bad_sql": (
        "SELECT 1 FROM a; SELECT 2 FROM a",
        "DROP TABLE a",
        "INSERT INTO a VALUES (1)",
        "CREATE TABLE z AS SELECT * FROM a",
        "SELECT k FROM a UNION SELECT k FROM b",
        "(SELECT k FROM a)",
        "SELECT sum(v FROM a",
        "SELECT 'open FROM a",
        "",
        ";",
        "SET spark.sql.ansi.enabled = false",
        "EXPLAIN SELECT k FROM a",
        "SELECT sum(nowhere) FROM a",
        "VALUES (1)",
        "DESCRIBE a",
        "CACHE TABLE a",
        "ADD JAR '/tmp/x.jar'",
        "SHOW TABLES",
        "SELECT k FROM a WHERE",
        "\x00",
    ),
    "unknown_table": (
        "SELECT * FROM nowhere",
        "SELECT * FROM a JOIN nowhere ON a.k = nowhere.k",
        "SELECT (SELECT max(z) FROM nowhere) FROM a",
        "SELECT * FROM `/etc/passwd`",
        "SELECT k FROM a WHERE k IN (SELECT k FROM `b; DROP TABLE a`)",
    ),
    "not_supported": (
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM parquet.`/tmp`",
        "SELECT * FROM text.`/etc/passwd` JOIN a ON true",
        "SELECT k FROM a WHERE k IN (SELECT value FROM text.`/etc/passwd`)",
        "SELECT * FROM default.a",
        "SELECT * FROM range(10)",
        "SELECT * FROM a, range(1000000000000)",
        "SELECT * FROM a, LATERAL explode(array(1, 2)) AS t(x)",
        "SELECT * FROM a LATERAL VIEW explode(array(1)) t AS x",
        "SELECT explode(sequence(1, 1000000000)) FROM a",
        "SELECT size(sequence(1, 1000000000)) FROM a",
        "SELECT reflect('java.lang.System', 'exit', 1) FROM a",
        "SELECT `reflect`('java.lang.System', 'exit', 1) FROM a",
        "SELECT sum(java_method('java.lang.System', 'nanoTime')) FROM a",
        "SELECT try_reflect('java.lang.System', 'nanoTime') FROM a",
        "SELECT system.builtin.reflect('java.lang.System', 'nanoTime') FROM a",
        "SELECT input_file_name() FROM a",
        "SELECT _metadata.file_path FROM a",
        "SELECT current_user FROM a",
        "SELECT current_user() FROM a",
        "SELECT session_user FROM a",
        "SELECT version() FROM a",
        "SELECT TRANSFORM(k) USING 'cat' FROM a",
        "SELECT * FROM (SELECT TRANSFORM(k) USING 'cat' AS x FROM a) AS t",
        "SELECT repeat('x', 2000000000) FROM a",
        "SELECT space(2000000000) FROM a",
        "SELECT collect_list(v) FROM a",
        "SELECT median(v) FROM a",
        "SELECT k FROM a WHERE concat('', k) RLIKE '(a+)+$'",
        "SELECT k FROM a WHERE concat('', k) LIKE '%a%a%a%a%a%b'",
        "SELECT k FROM a WHERE NOT concat('', k) ILIKE '!%%%%' ESCAPE '!'",
        "SELECT k FROM a WHERE concat('', k) LIKE ANY ('a', ('%a%a%a%b'))",
        "SELECT k FROM a WHERE concat('', k) LIKE concat('%a%a%a', '%b')",
        "SELECT k FROM a WHERE like(concat('', k), r'%a\\%a%b%')",
        "SELECT k FROM a WHERE concat('', k) LIKE '%a' '%a%a%b'",
        "SELECT count(*) FROM a WHERE concat('', k) LIKE concat('', v)",
        "SELECT regexp_replace(concat('', k), '(a+)+$', '') FROM a",
        "SELECT rand() FROM a",
        "SELECT uuid() FROM a",
        "SELECT transform(array(v), x -> x + 1) FROM a",
        "SELECT :p FROM a",
        "SELECT ? FROM a",
        "SELECT v FROM a TABLESAMPLE (5 ROWS)",
        "SELECT * FROM a VERSION AS OF 2",
        "SELECT * FROM IDENTIFIER('a')",
        "SELECT * FROM VALUES (1) AS t(x)",
        "SELECT 1",
        "FROM a |> WHERE v > 1",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r, a",
        "SELECT /*+ BROADCAST(a) */ sum(v) FROM a",
        "SELECT * FROM a PIVOT (sum(v) FOR k IN (1, 2))",
        "SELECT assert_true(v > 1) FROM a",
        "SELECT raise_error('x') FROM a",
        "SELECT spark_partition_id() FROM a",
        "SELECT from_json('{}', 'a INT') FROM a",
        "SELECT k FROM a SORT BY k",
        "SELECT k FROM a DISTRIBUTE BY k",
        "SELECT ai_query('x', 'y') FROM a",
        "SELECT java_method('java.lang.Runtime', 'getRuntime') FROM a",
        "SELECT sum(v) FROM STREAM(a)",
    ),
}


@dataclass(frozen=True, slots=True)
class RequestStatement:
    sql: str
    tables: tuple[str, ...]
    is_ordered: bool = False  # by columns that make its rows distinct


class RequestStatements(QueryStatements):
    """Statements from a seed."""

    def right(self) -> RequestStatement:  # type: ignore[override]
        rng = self._rng
        if rng.random() < 0.2:
            return RequestStatement(rng.choice(_WHOLE), ("a", "b", "c"))
        tables = tuple(rng.choice("abc") for _ in range(rng.choices((1, 2, 3), (4, 2, 1))[0]))
        aliases = [f"{name}{place}" for place, name in enumerate(tables)]
        where = f" WHERE {self._conditions(tables, aliases)}" if rng.random() < 0.4 else ""
        keys = [self._key(name, alias) for name, alias in zip(tables, aliases, strict=True)]
        keys = rng.sample(keys, rng.randint(0, min(2, len(keys))))
        parts = [*keys, *(self._request_aggregate(tables, aliases) for _ in range(rng.randint(1, 4)))]
        names = rng.sample([f"o{place}" for place in range(len(parts))], rng.randint(0, len(parts)))
        shown = [f"{part} AS o{place}" if f"o{place}" in names else part for place, part in enumerate(parts)]
        rng.shuffle(shown)
        sql = f"SELECT {', '.join(shown)} FROM {self._from(tables, aliases)}{where}"
        sql += f" GROUP BY {', '.join(keys)}" if keys else ""
        if rng.random() < 0.4:
            number = self._number(tables, aliases)
            conditions = [each.format(number=number) for each in rng.sample(_HAVING, rng.randint(1, 2))]
            conditions += [f"{keys[0]} <> 3"] if keys and rng.random() < 0.4 else []
            sql += f" HAVING {' AND '.join(f'({each})' for each in conditions)}"
        is_ordered = bool(keys) and rng.random() < 0.5
        if is_ordered:
            order = [f"{self._aggregate(tables, aliases)} DESC"] if rng.random() < 0.5 else []
            ends = ("", " ASC", " DESC", " NULLS LAST", " DESC NULLS FIRST")
            order += [f"{key}{rng.choice(ends)}" for key in keys]
            sql += f" ORDER BY {', '.join(order)}"
            sql += rng.choice(["", f" LIMIT {rng.randint(0, 5)}", " LIMIT 3 OFFSET 1"])
        return RequestStatement(sql, tables, is_ordered)

    def wrong_request(self) -> tuple[str, str]:
        """A refused statement, in random case and with comments, and its error code."""
        rng = self._rng
        code = rng.choice(list(_WRONG))
        sql = rng.choice(_WRONG[code])
        if rng.random() < 0.3 and "'" not in sql and "`" not in sql:
            sql = "".join(rng.choice((letter.upper(), letter.lower())) for letter in sql)
        if rng.random() < 0.3 and "'open" not in sql and "/*" not in sql:
            # sqlglot reads some words as one, such as DISTRIBUTE BY; they must have no comment between them.
            comments = [] if " by " in sql.lower() else [" /* c */ ", " -- c\n"]
            sql = sql.replace(" ", rng.choice(["  ", "\n", "\t", *comments]))
        return sql, code

    def _number(self, tables: tuple[str, ...], aliases: list[str]) -> str:
        at = self._rng.randrange(len(tables))
        return f"{aliases[at]}.{NUMBERS[tables[at]]}"

    def _request_aggregate(self, tables: tuple[str, ...], aliases: list[str]) -> str:
        at = self._rng.randrange(len(tables))
        number = self._number(tables, aliases)
        return self._rng.choice(
            [
                self._aggregate(tables, aliases),
                f"sum({number} * {number}) / nullif(count({number}), 0)",
                f"(2 * avg({number}) - 1) * count(*)",
                f"-sum({number}) + 3 * (count(*) - count({number}))",
                f"{self._rng.choice(_SCATTERS)}({self._number(tables, aliases)})",
                f"count(DISTINCT {self._key(tables[at], aliases[at])})",
                f"mean({self._number(tables, aliases)})",
            ]
        )


def all_wrong() -> list[tuple[str, str]]:
    """All refused statements, with their error codes."""
    return [(sql, code) for code, each in _WRONG.items() for sql in each]
