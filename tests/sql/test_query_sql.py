"""What the SQL of a continuous query may be, and what it is made of."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases, sampled
from freshline.base.errors import InputError
from freshline.sql.from_tables import ReadableTable
from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream
from freshline.sql.query_sql import QuerySql, read_query
from freshline.sql.slices import Slices
from freshline_lab.campaigns.sql.query_statements import QueryStatements
from freshline_lab.campaigns.sql.statements import Statements

HALF = Fraction(1, 2)
A, B, C = Stream("a"), Stream("b"), Stream("c")
TABLES = {
    "a": ReadableTable("a", ("ts", "k", "v"), "ts", Slices("k")),
    "b": ReadableTable("b", ("ts", "k", "w"), "ts", Slices("K")),
    "c": ReadableTable("c", ("ts", "j", "x"), "ts", Slices("j")),
    "random": ReadableTable("random", ("ts", "k", "z"), "ts", Slices(), Fraction(10)),
    "whole": ReadableTable("whole", ("ts", "k", "y"), "ts"),
    "unknown": ReadableTable("unknown", None, None, Slices("k")),
    "other": ReadableTable("other", None, None, Slices("k")),
}
seeds = st.integers(0, 10**9)


def find(name: str) -> ReadableTable:
    if name.lower() in TABLES:
        return TABLES[name.lower()]
    raise InputError(f"there is no table `{name}`", "Name another")


def read(sql: str) -> QuerySql:
    return read_query(sql, find)


def refusal(sql: str) -> str:
    with pytest.raises(InputError) as raised:
        read(sql)
    return str(raised.value)


def streams(operator: Operator) -> list[str]:
    match operator:
        case Stream(name):
            return [name]
        case Join(_, left, right):
            return streams(left) + streams(right)
    return streams(operator.input)


@pytest.mark.parametrize(
    ("sql", "tree"),
    [
        ("SELECT * FROM a", A),
        ("SELECT * FROM a WHERE v > 1", Select(HALF, A)),
        ("SELECT k, v FROM a WHERE v > 1 AND (v < 5 OR k = 'x')", Project(Select(HALF, A))),
        ("SELECT k FROM a", Project(A)),
        ("SELECT avg(v) AS mean FROM a", Aggregate(A)),
        ("SELECT k, count(*) FROM a WHERE v > 1 GROUP BY k", Aggregate(Select(HALF, A))),
        ("SELECT k FROM a GROUP BY k", Aggregate(A)),
        ("SELECT a.* FROM a JOIN b ON a.k = b.k", Join(HALF, A, B)),
        ("SELECT v, w FROM a JOIN b USING (k)", Project(Join(HALF, A, B))),
        ("SELECT x FROM a JOIN b USING (k) JOIN c ON c.j = b.k", Project(Join(HALF, Join(HALF, A, B), C))),
        (
            "SELECT sum(v) FROM a INNER JOIN b ON b.k = a.k AND b.w > 1 WHERE a.v > 2",
            Aggregate(Join(HALF, Select(HALF, A), Select(HALF, B))),
        ),
        ("SELECT v FROM a JOIN b ON a.k = b.k WHERE v < w", Project(Select(HALF, Join(HALF, A, B)))),
        ("SELECT one.v FROM a one JOIN a two ON one.k = two.k", Project(Join(HALF, A, A))),
        ("FROM a SELECT k", Project(A)),
    ],
)  # fmt: skip
def test_a_query_is_a_tree_of_operators(sql: str, tree: Operator) -> None:
    assert read(sql).operators(None) == tree


def test_a_declared_selectivity_is_that_of_the_only_operator_which_has_one() -> None:
    tenth = Fraction(1, 10)
    assert read("SELECT k FROM a WHERE v > 1").operators(tenth) == Project(Select(tenth, A))
    assert read("SELECT v FROM a JOIN b USING (k)").operators(tenth) == Project(Join(tenth, A, B))
    two = read("SELECT v FROM a JOIN b USING (k) WHERE v > 1")
    assert two.operators(tenth) == two.operators(None)


@pytest.mark.parametrize(
    ("sql", "in_slices"),
    [
        ("SELECT v FROM a", {0}),
        ("SELECT v, w FROM a JOIN b ON a.k = b.k", {0, 1}),
        ("SELECT v, w FROM a JOIN b ON a.k = b.k AND a.v = b.w", {0, 1}),
        ("SELECT v, w FROM a JOIN b ON a.v = b.w", {0}),
        ("SELECT v, y FROM a JOIN whole ON a.k = whole.k", {0}),
        ("SELECT v, y FROM whole JOIN a ON a.k = whole.k", {1}),
        ("SELECT v, x FROM a JOIN b USING (k) JOIN c ON c.j = b.k", {0, 1, 2}),
        ("SELECT v, x FROM a JOIN b USING (k) JOIN c ON c.x = b.k", {0, 1}),
        # c and a are equal by way of the whole table's key.
        ("SELECT v, x FROM a JOIN whole ON a.k = whole.k JOIN c ON c.j = whole.k", {0, 2}),
        ("SELECT v, x FROM a JOIN c ON c.x = a.v WHERE a.k = c.j", {0, 1}),
        # Ten rows a second are more than none that are known.
        ("SELECT v, z FROM a JOIN random ON a.k = random.k", {1}),
        ("SELECT one.z, two.z AS y FROM random one JOIN random two ON one.k = two.k", {0}),
    ],
)  # fmt: skip
def test_tables_are_read_in_slices_where_equal_keys_meet_and_otherwise_one_of_them(sql, in_slices) -> None:
    assert read(sql).in_slices() == in_slices


def test_a_query_over_no_table_in_slices_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"it reads `whole`, which is not kept in slices. Add `slices: \{\}` to"
    ):
        read("SELECT y FROM whole").in_slices()
    with pytest.raises(InputError, match=r"none of the tables that it reads is kept in slices. Add `slices"):
        read("SELECT one.y FROM whole one JOIN whole two ON one.k = two.k").in_slices()


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT k, count(*) FROM a GROUP BY k HAVING count(*) > 1", "it has a HAVING"),
        ("SELECT DISTINCT k FROM a", "it has a DISTINCT. Use GROUP BY."),
        ("SELECT k, sum(v) OVER () AS s FROM a", "it has a window function (OVER)"),
        ("SELECT sum(v), sum(v) OVER () AS s FROM a", "it has a window function (OVER)"),
        ("SELECT k FROM (SELECT k FROM a)", "it reads a query in its FROM"),
        ("SELECT k FROM a WHERE k IN (SELECT k FROM b)", "it has a query within the query"),
        ("SELECT (SELECT max(w) FROM b) FROM a", "it has a query within the query"),
        ("WITH z AS (SELECT k FROM a) SELECT k FROM z", "it has a WITH"),
        ("SELECT v FROM a LEFT JOIN b ON a.k = b.k", "it has a LEFT JOIN: rows without a match may have one"),
        ("SELECT v FROM a FULL OUTER JOIN b ON a.k = b.k", "it has a FULL OUTER JOIN"),
        ("SELECT v FROM a LEFT ANTI JOIN b ON a.k = b.k", "it has a LEFT ANTI JOIN"),
        ("SELECT v FROM a, b", "it joins tables without a condition. Write it as `a JOIN b ON a.key"),
        ("SELECT v FROM a CROSS JOIN b", "it joins tables without a condition"),
        ("SELECT v FROM a JOIN b ON a.v < b.w", "`b` is joined without an equality of columns"),
        ("SELECT v FROM a JOIN b ON a.k = a.v", "`b` is joined without an equality of columns"),
        (
            "SELECT v FROM a JOIN b USING (k) JOIN c ON j = v JOIN c d ON d.j = c.j",
            "it joins 4 tables, and may join 3",
        ),
        ("SELECT k FROM a UNION SELECT k FROM b", "it is a UNION of queries"),
        ("(SELECT k FROM a)", "it is not a plain SELECT"),
        ("SELECT k FROM a ORDER BY k", "it has an ORDER BY: an answer is put together from parts"),
        ("SELECT k FROM a LIMIT 1", "it has a LIMIT: which rows come first is not known"),
        ("SELECT k FROM a WHERE ts > now()", "`now` gives something else each time it is asked"),
        ("SELECT k FROM a WHERE ts > 'yesterday'", "`'yesterday'` gives something else each time"),
        ("SELECT rand() AS r FROM a", "`rand` gives something else each time it is asked"),
        ("SELECT k FROM nowhere", "there is no table `nowhere`"),
        ("SELECT kk FROM a", "there is no column `kk` in `a`. Perhaps `k` is meant."),
        ("SELECT z.v FROM a", "there is no column `z` in `a`. Name one of its columns: ts, k, v, _late."),
        ("SELECT nothing FROM a JOIN b USING (k)", "there is no column `nothing` in `a` and `b`"),
        ("SELECT ts FROM a JOIN b USING (k)", "`ts` may be a column of several tables. Write `a.ts` or `b"),
        ("SELECT a.k, b.k FROM a JOIN b ON a.k = b.k", "two columns of the answer are called `k`"),
        ("SELECT * FROM a JOIN b USING (k)", "two columns of the answer are called `ts`"),
        ("SELECT a.v FROM a JOIN a ON a.k = a.k", "two tables of its FROM are called `a`"),
        ("SELECT _slice FROM a", "`_slice` is a column that Freshline keeps for itself"),
        ("SELECT a._SLICE FROM a", "`_slice` is a column that Freshline keeps for itself"),
        ("SELECT median(v) FROM a", "`median` is not one of count, sum, avg, min and max"),
        ("SELECT max_by(v, ts) FROM a", "`max_by` is not one of count, sum, avg, min and max"),
        ("SELECT count(DISTINCT k) FROM a", "`count` counts each value once, which parts of the rows"),
        ("SELECT median(v) FILTER (WHERE v > 1) FROM a", "`median` is not one of count, sum"),
        ("SELECT max(v) - min(v) FROM a", "`MAX(v) - MIN(v)` is computed from aggregates"),
        ("SELECT sum(v) / count(DISTINCT k) FROM a", "`count` counts each value once"),
        ("SELECT sum(max(v)) FROM a", "`max` stands in `sum`"),
        ("SELECT count(k, v) FROM a", "`count` has 2 arguments. Give it one."),
        ("SELECT k FROM a WHERE count(*) > 1", "`count` stands in a condition"),
        ("SELECT v, count(*) FROM a GROUP BY k", "`v` is neither what it groups by nor count"),
        ("SELECT *, count(*) FROM a GROUP BY k", "it has a `*` beside groups"),
        ("SELECT k, count(*) FROM a GROUP BY ROLLUP (k)", "its GROUP BY has more than columns"),
        ("SELECT k, count(*) FROM a GROUP BY ALL", "its GROUP BY has more than columns"),
        ("SELECT k, count(*) FROM a GROUP BY 2", "`count` stands in GROUP BY"),
        ("SELECT k, count(*) FROM a GROUP BY 9", "it groups by 9, which is no column"),
        ("SELECT explode(array(k, v)) AS e FROM a", "`explode` makes several rows of one"),
        ("SELECT stack(2, k, v) FROM a", "`stack` makes several rows of one"),
        ("SELECT count(*) FROM a GROUP BY session_window(ts, '1 minute')", "a session depends on rows"),
        ("SELECT k FROM a TABLESAMPLE (5 ROWS)", "its FROM has more than tables and joins"),
        ("SELECT k FROM a VERSION AS OF 2", "its FROM has more than tables and joins"),
        ("SELECT /*+ BROADCAST(b) */ v FROM a JOIN b USING (k)", "it has a hint. Remove it."),
        ("SELECT struct(*) AS s FROM a", "a `*` stands within an expression. Name the columns"),
        ("SELECT count(a.*) FROM a", "a `*` stands within an expression"),
        ("SELECT :limit FROM a", "it has a parameter without a value"),
        ("SELECT 1", "it reads no table"),
        ("SELECT k FROM unknown JOIN other ON j = i", "the table of the column `j` is not known"),
        ("DELETE FROM a", "the SQL is not a query: it begins with 'DELETE'"),
        ("SELECT k FROM", "the SQL does not parse"),
    ],
)  # fmt: skip
def test_what_is_outside_the_operators_is_refused_with_a_reason(sql: str, what: str) -> None:
    assert refusal(sql).startswith(what)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT upper(k) AS big, count(*) FROM a GROUP BY big",
        "SELECT upper(k) AS big, count(*) FROM a GROUP BY 1",
        "SELECT A.K, count(*) FROM a GROUP BY ((k))",
        "SELECT v AS k, count(*) FROM a GROUP BY v, k",
        "SELECT window(ts, '10 seconds').start AS t, count(*) FROM a GROUP BY window(TS, '10 seconds').start",
        "SELECT anything FROM unknown WHERE something > 1",
        "SELECT transform(array(v), x -> x + 1) AS more FROM a",
        "SELECT k FROM a WHERE k = 'today'",
        "SELECT k FROM a WHERE _late",
    ],
)
def test_what_is_within_the_operators_is_taken(sql: str) -> None:
    assert read(sql).in_slices() == {0}


@sampled(500)
@given(seeds)
def test_every_query_within_the_operators_has_a_tree_over_what_it_reads(seed: int) -> None:
    statement = QueryStatements(seed).right()
    query = read(statement.sql)
    tree = query.operators(None)
    assert tuple(streams(tree)) == statement.tables
    assert isinstance(tree, Aggregate) == statement.is_grouped
    below = tree.input if isinstance(tree, Aggregate | Project) else tree
    assert len(statement.tables) == 1 or isinstance(below, Join | Select)
    assert not statement.conditions or "Select(" in repr(tree)
    in_slices = query.in_slices()
    assert in_slices
    # The keys of all three are what they are dealt by, and they are joined by nothing else.
    assert len(in_slices) == len(statement.tables)


@sampled(500)
@given(seeds)
def test_every_query_with_one_thing_that_operators_have_not_is_refused(seed: int) -> None:
    message = refusal(QueryStatements(seed).wrong())
    assert message.endswith(".")
    assert ". " in message, "what is wrong, and what to do"


@pytest.mark.sampled
def test_nothing_that_users_write_gets_further_than_a_sentence() -> None:
    taken = 0
    for seed in range(cases(1_000, one_in=20)):
        for sql in (
            Statements(seed).next(),
            QueryStatements(seed).wrong(),
            QueryStatements(seed).right().sql,
        ):
            for text in (sql, cut_somewhere(sql, seed), swapped(sql, seed)):
                with suppress(InputError):
                    query = read(text)
                    taken += 1
                    assert streams(query.operators(None))
                    assert query.in_slices()
    assert taken > cases(1_000, one_in=20)


def cut_somewhere(sql: str, seed: int) -> str:
    words = sql.split()
    del words[seed % len(words)]
    return " ".join(words)


def swapped(sql: str, seed: int) -> str:
    words = sql.split()
    one, other = seed % len(words), (seed * 7 + 3) % len(words)
    words[one], words[other] = words[other], words[one]
    return " ".join(words)
