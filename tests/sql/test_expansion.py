"""What a statement expands to: counted before Spark sees it, and refused beyond limits."""

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.load import load
from freshline.sql.expansion.relations import (
    CHARACTERS_MAX,
    EXPRESSIONS_MAX,
    RELATIONS_MAX,
    ROWS_MAX,
    StatementTooLarge,
)
from freshline.sql.expansion.statement import expansion
from freshline.sql.from_tables import ReadableTable
from freshline.sql.query import parse_query, parse_tokens, query_tokens
from freshline.sql.request_sql import RequestRefused, read_request
from freshline_lab.campaigns.sql.growing_statements import GrowingStatements, GrownStatement

NAMES = ("ts", "k", "v")
COLUMNS = dict.fromkeys("abc", NAMES)
TABLES = {name: ReadableTable(name, NAMES, "ts") for name in "abc"}
seeds = st.integers(0, 10**9)


def doubled(count: int) -> str:
    """Common table expressions, each of which joins the one before with itself."""
    one = "c{} AS (SELECT x.k, x.v FROM c{} x JOIN c{} y ON x.k = y.k)"
    more = ", ".join(one.format(at, at - 1, at - 1) for at in range(1, count + 1))
    return f"WITH c0 AS (SELECT k, v FROM a), {more} SELECT count(*) AS n FROM c{count}"


def test_24_joins_of_the_one_before_with_itself_are_refused_at_once() -> None:
    with pytest.raises(RequestRefused, match=r"expands to [0-9,]+ relations, and may have 300") as refused:
        read_request(doubled(24), TABLES)
    assert refused.value.code == "not_supported"  # 422


def is_within(statement: GrownStatement) -> bool:
    """Whether what it certainly expands to is within the limits."""
    return (
        statement.tables <= RELATIONS_MAX
        and statement.rows <= ROWS_MAX
        and statement.characters <= CHARACTERS_MAX
        and statement.expressions <= EXPRESSIONS_MAX
    )


def check_counted(statement: GrownStatement) -> None:
    try:
        query = parse_tokens(query_tokens(statement.sql), statement.sql)
        counts = expansion(query, COLUMNS)
    except StatementTooLarge:
        return
    assert counts.beyond() is None
    assert is_within(statement), "what is too large is refused"
    assert counts.relations >= statement.tables
    assert counts.rows >= statement.rows
    assert counts.characters >= statement.characters
    assert counts.expressions >= statement.expressions


@sampled(3_000, one_in=100)
@given(seed=seeds)
def test_a_request_that_grows_is_refused_or_counted(seed: int) -> None:
    check_counted(GrowingStatements(seed).request())


@sampled(3_000, one_in=100)
@given(seed=seeds)
def test_a_table_that_grows_is_refused_or_counted(seed: int) -> None:
    check_counted(GrowingStatements(seed).table())


def test_some_of_the_statements_that_grow_are_within_the_limits_and_some_are_not() -> None:
    within = [is_within(GrowingStatements(seed).request()) for seed in range(200)]
    assert 20 < sum(within) < 180


def dashboard(parts: int) -> str:
    """A long SELECT as people write them: common table expressions that are read once or twice."""
    texts = ["recent AS (SELECT ts, k, v FROM a WHERE ts > now() - INTERVAL 1 HOUR)"]
    for at in range(parts):
        source = "recent" if at % 3 else "b"
        lines = [
            f"  sum(CASE WHEN v BETWEEN {line} AND {line + 9} THEN v ELSE 0 END) AS s{line},"
            for line in range(9)
        ]
        lines += ["  count(DISTINCT k) AS users,", "  avg(v) AS mean, stddev(v) AS spread"]
        texts.append("\n".join((f"p{at} AS (SELECT date_trunc('minute', ts) AS m,", *lines,
                                f"  FROM {source} WHERE k IN ('x', 'y', 'z') GROUP BY 1)")))  # fmt: skip
    joins = "\n".join(f"LEFT JOIN p{at} ON p{at}.m = p0.m" for at in range(1, parts))
    columns = ",\n".join(
        f"p{at}.s0 + p{at}.s1 AS c{at}, p{at}.mean / nullif(p{at}.spread, 0) AS z{at}" for at in range(parts)
    )
    return f"WITH {', '.join(texts)}\nSELECT p0.m,\n{columns}\nFROM p0\n{joins}\nORDER BY p0.m LIMIT 100"


@pytest.mark.parametrize(
    "sql",
    [
        dashboard(20),
        "SELECT sum(v) AS s FROM a WHERE k IN (" + ", ".join(f"'{at:018d}'" for at in range(5_000)) + ")",
        "SELECT k, " + ", ".join(f"sum(v + {at}) AS s{at}" for at in range(400)) + " FROM a GROUP BY k",
        "SELECT k, count(*) AS n FROM a GROUP BY CUBE (k, v, ts, v + 1)",
        "SELECT count(*) AS n FROM a GROUP BY window(ts, '1 hour', '5 minutes')",
        doubled(5),
        " UNION ALL ".join(["SELECT * FROM (SELECT k, v FROM a)"] + ["SELECT k, v FROM b"] * 50),
    ],
)  # fmt: skip
def test_large_statements_that_people_write_are_taken(sql: str) -> None:
    parse_query(sql)
    if "UNION" not in sql:
        read_request(sql, TABLES)


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        (f"SELECT {'right(' * 20}k{', 3)' * 20} AS r FROM a", "expressions"),
        (f"SELECT {'nullif(' * 20}k{', 3)' * 20} AS r FROM a", "expressions"),
        (f"SELECT {'CASE ' * 12}v{' WHEN 1 THEN 2 WHEN 2 THEN 3 END' * 12} AS r FROM a", "expressions"),
        ("SELECT v AS x0, " + ", ".join(f"x{n} + x{n} AS x{n + 1}" for n in range(20)) + " FROM a", "expr"),
        ("SELECT count(*) FROM a GROUP BY CUBE (" + ", ".join(f"v + {n}" for n in range(20)) + ")", "expr"),
        ("SELECT count(*) FROM a GROUP BY window(ts, '1 day', '1 second')", "expressions"),
        ("SELECT " + ", ".join(f"count(DISTINCT v + {at})" for at in range(300)) + " FROM a", "expressions"),
        ("SELECT " + ", ".join(f"sum(v) OVER (ORDER BY v + {n})" for n in range(100)) + " FROM a", "nested"),
        ("SELECT k FROM a WHERE " + " AND ".join(["v > (SELECT max(v) FROM b)"] * 200), "relations"),
        ("WITH c AS (SELECT x.*, x.*, x.* FROM a x), d AS (SELECT x.*, x.*, x.*, x.*, x.*, x.* FROM c x), "
         "e AS (SELECT " + ", ".join(["x.*"] * 50) + " FROM d x) SELECT count(*) FROM e", "columns|expr"),
        ("SELECT " + "- " * 15_000 + "v FROM a", "nested too deeply"),
        ("SELECT " + "- " * 30_000 + "v FROM a", "words and signs"),
        ("SELECT '" + "x" * 200_000 + "' FROM a", "characters"),
    ],
)  # fmt: skip
def test_a_request_that_grows_in_one_way_is_refused_with_what_was_counted(sql: str, what: str) -> None:
    with pytest.raises(RequestRefused, match=what):
        read_request(sql, TABLES)


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT explode(sequence(1, 100000000)) AS n FROM a", "rows"),
        ("SELECT e FROM a LATERAL VIEW explode(sequence(1, 3000)) t AS e "
         "LATERAL VIEW explode(sequence(1, 3000)) u AS f", "rows"),
        ("SELECT * FROM a, range(10000000000)", "rows"),
        ("SELECT * FROM a, LATERAL explode(array_repeat(1, 10000000)) AS e(x)", "rows|characters"),
        ("SELECT stack(20000000, 1, 2) FROM a", "rows"),
        ("SELECT repeat(k, 1000000) FROM a", "characters"),
        ("SELECT repeat(repeat(repeat('x', 200), 200), 200) FROM a", "characters"),
        ("WITH n AS (SELECT k, 1000 * 1000 * 1000 AS n FROM a) SELECT repeat(k, n) FROM n", "characters"),
        ("SELECT lpad(k, 1e9, 'x') FROM a", "characters"),
        ("SELECT space(shiftleft(1, 30)) FROM a", "characters"),
        ("SELECT format_string('%1000000000d', v) FROM a", "characters"),
        ("SELECT aggregate(sequence(1, 40), k, (s, x) -> concat(s, s)) FROM a", "characters"),
        ("SELECT replace(repeat(k, 9000), 'x', repeat(k, 9000)) FROM a", "characters"),
        ("SELECT * FROM a PIVOT (sum(v) FOR k IN (" + ", ".join(map(str, range(3_000))) + "))", "col|expr"),
    ],
)  # fmt: skip
def test_a_table_that_makes_too_many_rows_or_too_long_texts_is_refused(sql: str, what: str) -> None:
    with pytest.raises(StatementTooLarge, match=what):
        parse_query(sql)


PROJECT = """\
name: large
pools: {{updates: {{tracks: 1}}, answers: {{tracks: 1, policy: lrm}}}}
feeds: {{a: {{path: in, format: csv, schema: "ts timestamp, k string, v long", timestamp: ts, period: 10s}}}}
tables:
  a: {{feed: a, pool: updates, cost: {{startup: 1s}}, slices: {{}}}}
{more}
"""


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("  b: {{sql: \"{sql}\", period: 10s, pool: updates, cost: {{startup: 1s}}}}", 6),
        ("queries:\n  b: {{sql: \"{sql}\", window: 10s, stride: 10s, pool: answers}}", 7),
    ],
)  # fmt: skip
def test_a_definition_that_grows_is_an_error_with_its_place(tmp_path: Path, more: str, line: int) -> None:
    file = tmp_path / "freshline.yml"
    sql = f"SELECT ts, {'nullif(' * 20}k{', 3)' * 20} AS k FROM a"
    file.write_text(PROJECT.format(more=more.format(sql=sql)), encoding="utf-8")
    with pytest.raises(InputError, match=r"expands to [0-9,]+ expressions, and may have 20,000") as found:
        load(file)
    errors = found.value.errors if isinstance(found.value, DefinitionErrors) else [found.value]
    assert errors[0].place is not None
    assert errors[0].place.line == line


@sampled(300, one_in=10)
@given(seed=seeds)
def test_texts_of_any_kind_are_counted_or_refused_without_another_error(seed: int) -> None:
    drawn = random.Random(seed)
    statement = GrowingStatements(seed).table().sql.split(" ")
    for _ in range(3):  # words left out or repeated
        at = drawn.randrange(len(statement))
        statement[at : at + 1] = [statement[at]] * drawn.choice((0, 2))
    with suppress(InputError):
        parse_query(" ".join(statement))
