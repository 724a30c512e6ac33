"""What the SQL of a request may be, how it is answered, and with what it is refused."""

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.sql.from_tables import ReadableTable
from freshline.sql.request_sql import RequestRefused, RequestSql, read_request
from freshline.sql.slices import Slices
from freshline_lab.campaigns.sql.request_statements import RequestStatements, all_wrong
from freshline_lab.campaigns.sql.statements import Statements

TABLES = {
    "a": ReadableTable("a", ("ts", "k", "v"), "ts", Slices("k")),
    "b": ReadableTable("b", ("ts", "k", "w"), "ts", Slices("k")),
    "c": ReadableTable("c", ("ts", "j", "x"), "ts", Slices("j")),
    "heavy": ReadableTable("heavy", ("ts", "k", "y", "user"), "ts", Slices("k", "y")),
    "whole": ReadableTable("whole", ("ts", "k", "z"), "ts"),
}
seeds = st.integers(0, 10**9)


def read(sql: str) -> RequestSql:
    return read_request(sql, TABLES)


def columns(sql: str) -> str | None:
    """What its parts are made of, and what is done to the answer's rows; None: it is answered whole."""
    found = read(sql).in_slices
    return None if found is None else f"{found.sql.select.sql('spark')} | {found.clauses.in_words}"


@pytest.mark.parametrize(("sql", "code"), all_wrong())
def test_what_is_not_a_plain_select_over_tables_is_refused(sql: str, code: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        read(sql)
    assert refused.value.code == code
    assert refused.value.what
    assert refused.value.remedy


@sampled(300)
@given(seed=seeds)
def test_comments_spaces_and_letter_case_hide_nothing(seed: int) -> None:
    sql, code = RequestStatements(seed).wrong_request()
    with pytest.raises(RequestRefused) as refused:
        read(sql)
    assert refused.value.code == code


@sampled(300)
@given(seed=seeds)
def test_what_is_right_is_taken(seed: int) -> None:
    statement = RequestStatements(seed).right()
    request = read(statement.sql)
    assert set(request.tables) <= set(TABLES)
    again = read(request.text)
    assert (again.text, again.is_whole) == (request.text, request.is_whole)


@sampled(200)
@given(seed=seeds)
def test_whatever_is_asked_there_is_an_answer_or_a_refusal(seed: int) -> None:
    rng = random.Random(seed)
    words = [*(sql for sql, _ in all_wrong()), RequestStatements(seed).right().sql, Statements(seed).next()]
    soup = " ".join(rng.choice(words) for _ in range(3)).split(" ")
    rng.shuffle(soup)
    for sql in (
        rng.choice(words)[: rng.randrange(80)],
        " ".join(soup[:30]),
        f"SELECT {' '.join(soup)} FROM a",
    ):
        with suppress(RequestRefused):
            read(sql)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT k, sum(v) FROM a GROUP BY k HAVING count(*) > 3 AND k <> 2 ORDER BY 2, max(v) LIMIT 5",
            "SELECT k AS _o0, SUM(v) AS _o1, COUNT(*) AS _o2, MAX(v) AS _o3 FROM a WHERE k <> 2 "
            "GROUP BY k | HAVING, ORDER BY, LIMIT",
        ),
        (
            "SELECT count(DISTINCT k) AS n FROM a HAVING n > 3",
            "SELECT COUNT(DISTINCT k) AS _o0 FROM a | HAVING",
        ),
        (
            "SELECT mean(v) AS v, std(v), variance(v) FROM a",
            "SELECT AVG(v) AS _o0, STDDEV(v) AS _o1, VARIANCE(v) AS _o2 FROM a | None",
        ),
        ("SELECT count(*), count(*) FROM a", "SELECT COUNT(*) AS _o0, COUNT(*) AS _o1 FROM a | None"),
        ("SELECT min(y) FROM heavy OFFSET 1", "SELECT MIN(y) AS _o0 FROM heavy | OFFSET"),
        ("SELECT count(DISTINCT v) FROM a", None),
        ("SELECT count(DISTINCT k) FROM heavy", None),
        ("SELECT sum(z) FROM whole", None),
        ("SELECT sum(v) / 2 FROM a", "SELECT SUM(v) / 2 AS _o0 FROM a | None"),
        (
            "SELECT k, -(sum(v) - 1) / nullif(count(*), 0) AS r FROM a GROUP BY k "
            "HAVING 2 * avg(v) > 1 ORDER BY r",
            "SELECT k AS _o0, -(SUM(v) - 1) / NULLIF(COUNT(*), 0) AS _o1, 2 * AVG(v) AS _o2 "
            "FROM a GROUP BY k | HAVING, ORDER BY",
        ),
        (
            "SELECT count(*) FILTER (WHERE v > 1), sum(v) FILTER (WHERE k = 2) / count(v) FROM a",
            "SELECT COUNT(CASE WHEN v > 1 THEN 1 END) AS _o0, "
            "SUM(CASE WHEN k = 2 THEN v END) / COUNT(v) AS _o1 FROM a | None",
        ),
        ("SELECT sum(v) / k FROM a GROUP BY k", None),
        ("SELECT round(avg(v), 2) FROM a", None),
        ("SELECT max(v) - min(v) FROM a", None),
        ("SELECT sum(v) / count(DISTINCT k) FROM a", None),
        ("SELECT sum(v) DIV 2 FROM a", None),
        ("SELECT count(DISTINCT k) FILTER (WHERE v > 1) FROM a", None),
        ("SELECT k, count(*) FROM a GROUP BY k HAVING k + count(*) > 3", None),
        ("SELECT k, sum(v) AS v FROM a GROUP BY k HAVING v > 3", None),
        ("SELECT sum(v) FROM a HAVING 1 = 0", None),
        ("SELECT v FROM a ORDER BY v LIMIT 3", None),
        (
            "SELECT count(*) FROM a WHERE ts > now() AND ts < current_date",
            "SELECT COUNT(*) AS _o0 FROM a WHERE ts > TIMESTAMP_MICROS(4611686018427387904) AND ts < "
            "CAST(TIMESTAMP_MICROS(4611686018427387904) AS DATE) | None",
        ),
    ],
)
def test_requests_are_answered_in_parts_where_parts_give_the_answer(sql: str, expected: str | None) -> None:
    assert columns(sql) == expected


@pytest.mark.parametrize(
    ("sql", "sides"),
    [
        ("SELECT sum(v) FROM a JOIN b ON a.k = b.k", {0, 1}),
        ("SELECT sum(v) FROM a JOIN c ON a.v = c.j", {0}),
        ("SELECT sum(v) FROM whole JOIN a USING (k)", {1}),
        ("SELECT sum(v) FROM a JOIN heavy ON a.k = heavy.k", {0}),
        ("SELECT sum(h.y) FROM heavy h JOIN heavy i ON h.k = i.k", {0}),
        ("SELECT sum(h.y) FROM heavy h JOIN a ON h.k = a.k JOIN b ON b.k = h.k", {1, 2}),
        ("SELECT count(DISTINCT whole.k) FROM whole JOIN a ON whole.k = a.k", {1}),
    ],
)
def test_tables_with_outliers_are_joined_in_slices_with_no_other(sql: str, sides: set[int]) -> None:
    found = read(sql).in_slices
    assert found is not None
    assert found.sides == sides


@pytest.mark.parametrize("pattern", ["LIKE '%a%b%'", "LIKE 'a'", "ILIKE ('%_x%')", "LIKE ALL ('%a', 'b%c%')"])
def test_a_pattern_of_a_few_wildcards_is_taken(pattern: str) -> None:
    assert not read(f"SELECT count(*) FROM a WHERE concat('', k) {pattern}").is_whole


def test_a_column_may_be_called_like_a_function_that_tells_about_the_machine() -> None:
    assert read("SELECT user FROM heavy").is_whole
    with pytest.raises(RequestRefused, match="`user` is not a function"):
        read("SELECT user FROM a")


def test_long_sql_is_refused_before_it_is_read() -> None:
    with pytest.raises(RequestRefused, match="may have 131,072") as refused:
        read(f"SELECT sum(v) FROM a WHERE k IN ({', '.join(['1'] * 60_000)})")
    assert refused.value.code == "not_supported"


def test_a_request_is_told_by_its_words_alone() -> None:
    one = read("SELECT  sum(v) -- all of it\nFROM a /* the table */ WHERE k < 10L")
    assert one.text == "SELECT sum ( v ) FROM a WHERE k < 10L"
    assert one.text == read("SELECT sum(v) FROM a WHERE k < 10L;").text
