"""Joins over ranges of time, and the `lookback` and `align` that they need to be run."""

from datetime import datetime, timedelta

import duckdb
import pytest

from freshline.base.duration import DAY, HOUR, MINUTE, SECOND, format_duration
from freshline.sql.query import parse_query
from refused_runs import GREATEST, RANGE, of_query

IN_TIME = "Add one to ON, such as `a.ts = b.ts` or `b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts`."


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.ts FROM a JOIN b ON a.src = b.src",
        "SELECT a.ts FROM a CROSS JOIN b",
        "SELECT a.ts FROM a JOIN b ON a.ts <= b.at",
        "SELECT a.ts FROM a JOIN b ON a.ts = b.at OR a.src = b.src",
        "SELECT a.ts FROM a JOIN b ON hour(a.ts) = hour(b.at)",
        "SELECT a.ts FROM a JOIN b ON abs(unix_micros(a.ts) - unix_micros(b.at)) > 9",
        "SELECT a.ts FROM a, (SELECT src FROM b) AS b WHERE a.src = b.src",
    ],
)
def test_a_join_without_a_bound_in_time_is_refused(sql: str) -> None:
    assert of_query(sql) == [
        f"freshline.yml:9: tables.t.sql: `b` is joined without a bound in time. {IN_TIME}"
    ]


def test_windows_need_align_of_their_length() -> None:
    sql = "SELECT window.start AS ts, count(*) AS n FROM a GROUP BY window(ts, '30 minutes')"
    assert of_query(sql) == [
        "freshline.yml:9: tables.t.sql: its SQL has windows of time, and `align` is missing. "
        "Add the windows' length, such as `align: 30m`."
    ]
    assert of_query(sql, "align: 45m,") == [
        "freshline.yml:9: tables.t.align: it is not a whole number of the SQL's windows of 30m. "
        "Give the windows' length or a multiple of it."
    ]


def test_a_join_over_a_range_needs_lookback() -> None:
    assert of_query(f"{GREATEST} {RANGE}") == [
        "freshline.yml:9: tables.t.sql: its SQL joins over a range of time, and `lookback` is missing. "
        "Add the length of the range, such as `lookback: 10 minutes`."
    ]


# Queries, and how far before a row's timestamp what it is made of can lie.
RANGES = [
    (f"{GREATEST} FROM a JOIN b ON a.ts = b.at - INTERVAL 1 HOUR", HOUR),
    (f"{GREATEST} FROM a JOIN b ON a.ts + INTERVAL '90 minutes' = b.at", 90 * MINUTE),
    (f"{GREATEST} FROM a JOIN b ON a.ts = b.at + INTERVAL 1 HOUR 30 MINUTES", 90 * MINUTE),
    (
        f"{GREATEST} FROM a JOIN b ON a.ts BETWEEN b.at - INTERVAL 1 HOUR AND b.at + INTERVAL 2 HOURS",
        2 * HOUR,
    ),
    (f"{GREATEST} FROM a JOIN b ON a.ts > b.at - INTERVAL 1 SECOND AND a.ts <= b.at", SECOND - 1),
    (f"{GREATEST} FROM a JOIN b ON b.at + INTERVAL -1 MINUTE <= a.ts AND b.at >= a.ts", MINUTE),
    (f"{GREATEST} FROM a, b WHERE a.ts - b.at BETWEEN INTERVAL 5 MINUTES AND INTERVAL 7 MINUTES", 7 * MINUTE),
    (
        f"{GREATEST} FROM a, b WHERE a.ts - b.at < INTERVAL 5 MINUTES AND -INTERVAL 1 DAY < a.ts - b.at",
        DAY - 1,
    ),
    (
        f"{GREATEST} FROM a JOIN b ON unix_micros(a.ts) - unix_micros(b.at) BETWEEN -7 * 60000000 AND 1",
        7 * MINUTE,
    ),
    # The closer of two bounds counts; ranges that follow each other add up.
    (
        f"{GREATEST} FROM a JOIN b ON a.ts BETWEEN b.at - INTERVAL 1 DAY AND b.at "
        "AND a.ts >= b.at - INTERVAL 1 HOUR",
        HOUR,
    ),
    (
        "SELECT greatest(a.ts, b.at, c.ts) AS ts "
        "FROM a JOIN b ON a.ts BETWEEN b.at - INTERVAL 1 HOUR AND b.at "
        "JOIN a c ON c.ts BETWEEN a.ts - INTERVAL 1 MINUTE AND a.ts",
        HOUR + MINUTE,
    ),
    (
        "WITH c AS (SELECT greatest(x.ts, y.ts) AS ts FROM a x JOIN a y ON x.ts = y.ts - INTERVAL 1 HOUR) "
        f"{GREATEST} FROM c AS a JOIN b ON a.ts BETWEEN b.at - INTERVAL 1 MINUTE AND b.at",
        HOUR + MINUTE,
    ),
]


@pytest.mark.parametrize(("sql", "needed_us"), RANGES)
def test_a_lookback_shorter_than_the_range_is_refused(sql: str, needed_us: int) -> None:
    assert of_query(sql, f"lookback: {needed_us}us,") == []
    assert of_query(sql, f"lookback: {needed_us - 1}us,") == [
        "freshline.yml:9: tables.t.lookback: it is shorter than the range of time that its SQL joins over. "
        f"Give at least {format_duration(needed_us, up=True)}."
    ]


def test_a_difference_without_its_sign_is_a_range_on_both_sides() -> None:
    sql = f"{GREATEST} FROM a JOIN b ON abs(a.ts - b.at) < INTERVAL 5 MINUTES"
    assert of_query(sql, f"lookback: {5 * MINUTE - 1}us,") == []
    (said,) = of_query(sql, f"lookback: {5 * MINUTE - 2}us,")
    assert said.endswith("Give at least 5m.")


@pytest.mark.parametrize(("sql", "needed_us"), RANGES)
def test_what_is_asked_of_a_lookback_is_enough_and_no_more(sql: str, needed_us: int) -> None:
    """An update runs the query over (F − lookback, NF], and keeps the rows with a timestamp in (F, NF]."""
    freshness = datetime(2026, 1, 1)
    first = freshness + timedelta(microseconds=1)
    back = [0, SECOND - 1, MINUTE, 7 * MINUTE, HOUR, HOUR + MINUTE, 90 * MINUTE, 2 * HOUR, DAY - 1]
    instants = [first - timedelta(microseconds=each) for each in back]

    def rows(lookback_us: int) -> int:
        after = freshness - timedelta(microseconds=lookback_us)
        connection = duckdb.connect()
        for table, column in (("a", "ts"), ("b", "at")):
            connection.execute(f'CREATE TABLE {table} ("{column}" TIMESTAMP)')
            values = [[each] for each in instants if each > after]
            connection.executemany(f"INSERT INTO {table} VALUES (?)", values)
        query = f"SELECT count(*) FROM ({parse_query(sql).sql('duckdb')}) WHERE ts > ?"
        return int(connection.execute(query, [freshness]).fetchall()[0][0])

    assert rows(2 * DAY) == rows(needed_us) > rows(needed_us - 1)


@pytest.mark.parametrize(
    "joins",
    [
        "FROM a JOIN b ON a.ts BETWEEN b.at - INTERVAL 1 MONTH AND b.at",
        "FROM a JOIN b ON a.ts BETWEEN b.at - make_dt_interval(0, 1) AND b.at",
        "FROM a JOIN b ON a.ts BETWEEN b.at - INTERVAL b.n HOURS AND b.at AND a.ts > b.at - INTERVAL 1 DAY",
        "FROM a JOIN b ON abs(timestampdiff(SECOND, a.ts, b.at)) <= 20",
        "FROM a JOIN b ON a.ts = b.at - INTERVAL 1 MONTH",
        f"{RANGE} AND (a.ts = b.at OR a.ts > b.at - INTERVAL 1 SECOND)",
    ],
)
def test_a_range_whose_length_is_not_known_needs_a_trusted_lookback(joins: str) -> None:
    (said,) = of_query(f"{GREATEST} {joins}", "lookback: 1s,")
    assert said.endswith("add `lookback_trusted: true` if you know that `lookback` covers it.")
    assert of_query(f"{GREATEST} {joins}", "lookback: 1s, lookback_trusted: true,") == []


def test_why_a_lookback_is_not_taken_is_said() -> None:
    assert of_query(f"{GREATEST} FROM a JOIN b ON timediff(a.ts, b.at) < 9", "lookback: 1h,") == [
        "freshline.yml:9: tables.t: its SQL joins over a range of time without showing how long "
        "the range is. Write it in the form `b.ts BETWEEN a.ts - INTERVAL 1 HOUR AND a.ts`, or add "
        "`lookback_trusted: true` if you know that `lookback` covers it."
    ]
    (said,) = of_query(f"{GREATEST} {RANGE} AND hour(a.ts) = hour(b.at)", "lookback: 59m,")
    assert said == (
        "freshline.yml:9: tables.t.lookback: it is shorter than the range of time that its SQL joins over. "
        "Give at least 1h, or add `lookback_trusted: true` if you know that `lookback` covers it."
    )


@pytest.mark.parametrize(
    ("sql", "lookback"),
    [
        ("SELECT * FROM a", "1h"),
        ("SELECT a.ts FROM a JOIN b ON a.ts = b.at", "1h"),
        (f"{GREATEST} {RANGE}", "1h"),
        (f"{GREATEST} {RANGE}", "59m"),
        (f"{GREATEST} {RANGE} AND hour(a.ts) = hour(b.at)", "1h"),
    ],
)
def test_a_lookback_that_can_be_judged_need_not_be_trusted(sql: str, lookback: str) -> None:
    said = of_query(sql, f"lookback: {lookback}, lookback_trusted: true,")
    assert said[0] == (
        "freshline.yml:9: tables.t.lookback_trusted: it has no effect: the SQL itself shows how "
        "far back it reads. Remove it."
    )
    assert len(said) == 1 + (lookback == "59m")


@pytest.mark.parametrize(
    "joins",
    [
        f"{RANGE} AND unix_micros(b.at) - unix_micros(a.ts) < 1000000",
        f"{RANGE} AND a.ts > b.at",  # which no row can meet
    ],
)
def test_the_closest_of_several_ranges_counts(joins: str) -> None:
    assert of_query(f"{GREATEST} {joins}", "lookback: 1s,") == []
