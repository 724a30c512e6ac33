"""The tables that a query reads."""

import logging

import pytest

from freshline.base.errors import InputError
from freshline.sql.query import tables_read


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT * FROM packets", ("packets",)),
        ("SELECT * FROM packets;", ("packets",)),
        ("SELECT p.ts, h.name FROM packets p LEFT JOIN hosts AS h ON p.src = h.src", ("packets", "hosts")),
        ("SELECT ts FROM a UNION ALL SELECT ts FROM b EXCEPT SELECT ts FROM c", ("a", "b", "c")),
        ("(SELECT ts FROM packets)", ("packets",)),
        ("FROM packets SELECT ts", ("packets",)),
        ("FROM packets |> WHERE bytes > 0 |> SELECT ts", ("packets",)),
        ("SELECT (SELECT max(ts) FROM a) FROM b WHERE x IN (SELECT x FROM c)", ("a", "b", "c")),
        ("SELECT * FROM packets LATERAL VIEW explode(flags) f AS flag", ("packets",)),
        ("SELECT * FROM packets, range(10)", ("packets",)),
        ("SELECT * FROM packets JOIN VALUES (1), (2) AS v(x)", ("packets",)),
        ("SELECT sum(bytes) OVER w FROM packets WINDOW w AS (PARTITION BY src)", ("packets",)),
        ("SELECT /*+ BROADCAST(h) */ * FROM packets JOIN hosts h", ("packets", "hosts")),
        ("SELECT * FROM `packets` -- FROM nowhere", ("packets",)),
    ],
)
def test_the_tables_of_a_query_are_found_in_the_order_of_the_text(sql: str, tables: tuple[str, ...]) -> None:
    assert tables_read(sql) == tables


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window.start AS ts, count(*) FROM packets GROUP BY window(ts, '1 hour')",
        "SELECT src, count(*) FROM packets GROUP BY src, window(ts, '10 minutes', '5 minutes')",
        "SELECT count(*) FROM packets GROUP BY session_window(ts, '5 minutes')",
    ],
)
def test_sparks_time_windows_are_understood(sql: str) -> None:
    assert tables_read(sql) == ("packets",)


def test_a_table_read_twice_counts_once_whatever_its_case() -> None:
    assert tables_read("SELECT * FROM Packets a JOIN packets b ON a.ts = b.ts") == ("Packets",)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        (
            "WITH a AS (SELECT * FROM packets), b AS (SELECT * FROM a) SELECT * FROM B JOIN hosts",
            ("packets", "hosts"),
        ),
        ("WITH packets AS (SELECT * FROM packets WHERE bytes > 0) SELECT * FROM packets", ("packets",)),
        ("WITH RECURSIVE r AS (SELECT 1 AS n FROM a UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", ("a",)),
        ("SELECT * FROM (WITH q AS (SELECT * FROM a) SELECT * FROM q) JOIN q", ("a", "q")),
        ("WITH a AS (SELECT * FROM t) SELECT * FROM u WHERE EXISTS (SELECT 1 FROM A)", ("t", "u")),
        ("WITH a AS (WITH a AS (SELECT * FROM t) SELECT * FROM a) SELECT * FROM a", ("t",)),
        ("WITH a AS (SELECT * FROM b), b AS (SELECT * FROM c) SELECT * FROM a JOIN b", ("b", "c")),
    ],
)
def test_a_common_table_expression_is_no_table_where_it_is_in_scope(
    sql: str, tables: tuple[str, ...]
) -> None:
    assert tables_read(sql) == tables


ONE_QUERY = "Write one query that begins with SELECT or WITH."


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("", f"the SQL is empty. {ONE_QUERY}"),
        ("-- to do\n", f"the SQL is empty. {ONE_QUERY}"),
        ("DELETE FROM packets", f"the SQL is not a query: it begins with 'DELETE'. {ONE_QUERY}"),
        ("SHOW TABLES", f"the SQL is not a query: it begins with 'SHOW'. {ONE_QUERY}"),
        ("SELCT * FROM packets", f"the SQL is not a query: it begins with 'SELCT'. {ONE_QUERY}"),
        ("WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a", f"the SQL is not a query. {ONE_QUERY}"),
        ("SELECT * FROM a; SELECT * FROM b", f"the SQL holds several statements. {ONE_QUERY}"),
        ("SELECT 1", "the SQL reads no table. Name a table of the warehouse in its FROM."),
        ("SELECT * FROM range(3)", "the SQL reads no table. Name a table of the warehouse in its FROM."),
        (
            "SELECT * FROM lake.packets AS p",
            "the SQL reads `lake.packets`, which names a database. "
            "Name a table of the warehouse, without a prefix.",
        ),
        (
            "SELECT * FROM a.b.c.d",
            "the SQL reads `a.b.c.d`, which names a database. "
            "Name a table of the warehouse, without a prefix.",
        ),
        ("SELECT * FROM :source", "the SQL names a table by a parameter. Write the table's name itself."),
        (
            "SELECT * FROM IDENTIFIER('packets')",
            "the SQL names a table by IDENTIFIER(...). Write the table's name itself.",
        ),
        (
            "SELECT (a\nFROM packets",
            "the SQL does not parse at line 2, column 4, near `FROM`: expecting ). "
            "Correct the SQL there or just before.",
        ),
        (
            "SELECT * FROM packets WHERE",
            "the SQL does not parse at line 1, column 27, near `WHERE`. "
            "Correct the SQL there or just before.",
        ),
        ("SELECT 'a FROM packets", "the SQL has a quote or a comment that does not end. Close it."),
        ("SELECT 1 /* FROM packets", "the SQL has a quote or a comment that does not end. Close it."),
        (
            f"SELECT {'(' * 2000}1{')' * 2000} FROM packets",
            "the SQL is nested too deeply. Split the query into several tables.",
        ),
        (
            "SELECT date_trunc() FROM packets",
            "the SQL has a function that is called in a way it cannot be. "
            "Check the arguments of its functions.",
        ),
        *(
            (
                sql,
                "the SQL has a `|>` in a place, or with an operator, that is not understood here. "
                "Write it with SELECT instead of `|>`.",
            )
            for sql in (
                "SELECT ts FROM packets |> LIMIT 3",
                "SELECT * FROM (SELECT ts FROM packets |> LIMIT 3)",
                "FROM packets |> UNION ALL SELECT ts FROM packets",
            )
        ),
        ("SELECT 1 |> SELECT 2", "the SQL reads no table. Name a table of the warehouse in its FROM."),
        *(
            (sql, "the SQL is nested too deeply. Split the query into several tables.")
            for sql in (
                f"SELECT {' + '.join(['n'] * 3_000)} FROM packets",
                f"SELECT n{'::int' * 3_000} FROM packets",
                f"SELECT {'NOT ' * 3_000} true FROM packets",
                f"SELECT {'.'.join(['n'] * 3_000)} FROM packets",
                f"SELECT n FROM packets{' UNION SELECT n FROM packets' * 3_000}",
                f"SELECT n FROM packets WHERE {'(n = 1 OR (n = 2 AND ' * 300}n = 3{'))' * 300}",
            )
        ),
    ],
)
def test_what_is_not_one_query_over_tables_is_refused(
    sql: str, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(InputError) as raised:
        tables_read(sql)
    assert str(raised.value) == message
    assert caplog.text == ""
