"""What a query may make of time so that its table can be run, and what is refused."""

import pytest

from freshline.base.duration import parse_duration
from refused_runs import AS_IT_IS, UNGROUPED, of_query

SHIFTED = f"its column `ts` is not the timestamp of what it reads. {AS_IT_IS}"


@pytest.mark.parametrize(
    "time",
    [
        "timestamp_seconds(unix_timestamp(ts) + 3600)",
        "timestamp_seconds(unix_timestamp(ts) - 3600)",
        "timestamp_seconds(unix_timestamp(ts) * -1)",
        "timestamp_seconds(100 - unix_timestamp(ts))",
        "timestamp_seconds(ceil(unix_timestamp(ts) / 10) * 10)",
        "timestamp_seconds(round(unix_timestamp(ts) / 10) * 10)",
        "timestamp_seconds(unix_timestamp(ts) DIV 7 * 10)",
        "timestamp_millis(unix_timestamp(ts))",
        "timestamp_seconds(floor(unix_timestamp(date_trunc('minute', ts)) / 7) * 7)",
        "least(ts, TIMESTAMP '2026-01-01')",
        "greatest(ts, TIMESTAMP '2026-01-01')",
        "CASE WHEN n > 1 THEN ts ELSE date_trunc('hour', ts) END",
        "window(ts, '1 minute').end",
        "from_utc_timestamp(ts, 'Asia/Tokyo')",
        "to_timestamp(n)",
    ],
)
@pytest.mark.parametrize("align", ["1s", "10s", "1h"])
def test_a_time_that_is_not_known_to_be_in_the_rows_window_is_refused(time: str, align: str) -> None:
    said = of_query(f"SELECT {time} AS ts, n FROM a", f"align: {align},")
    assert said == [f"freshline.yml:9: tables.t.sql: {SHIFTED}"]


# Times that are rounded down, and to what.
ROUNDED = [
    ("date_trunc('minute', ts)", "1m"),
    ("CAST(CAST(ts AS bigint) AS timestamp)", "1s"),
    ("timestamp_seconds(floor(unix_timestamp(ts) / 10) * 10)", "10s"),
    ("timestamp_seconds(floor(unix_seconds(ts) / 10.0) * 10)", "10s"),
    ("timestamp_seconds(10 * (unix_seconds(ts) DIV 10L))", "10s"),
    ("timestamp_seconds(CAST(unix_micros(ts) / 10000000 AS bigint) * 10)", "10s"),
    ("timestamp_millis(unix_millis(ts) DIV 500 * 500)", "500ms"),
    ("to_timestamp(from_unixtime(unix_timestamp(ts) DIV 60 * 60))", "1m"),
    ("window(ts, '15 minutes').start", "15m"),
    ("window(ts, '15 minutes').end - INTERVAL 15 MINUTES", "15m"),
    ("date_trunc('minute', ts + INTERVAL 1 HOUR) - INTERVAL 1 HOUR", "1m"),
    ("date_trunc('hour', timestamp_seconds(unix_timestamp(ts) DIV 60 * 60))", "1h"),
]


@pytest.mark.parametrize(("time", "step"), ROUNDED)
def test_a_time_that_is_rounded_down_needs_align_to_match(time: str, step: str) -> None:
    for sql in (f"SELECT {time} AS ts, n FROM a", f"SELECT {time} AS ts, sum(n) AS n FROM a GROUP BY 1"):
        assert of_query(sql, f"align: {step},") == []
        (said,) = of_query(sql, f"align: {parse_duration(step) // 2}us,")
        assert f"it is not a whole number of the SQL's windows of {step}." in said


@pytest.mark.parametrize(
    "by",
    [
        "ts, src WITH ROLLUP",
        "ts, src WITH CUBE",
        "ts, src GROUPING SETS ((ts, src), (src))",
        "GROUPING SETS ((ts, src), (src))",
        "CUBE (ts, src)",
    ],
)
def test_groups_that_may_leave_the_time_out_are_refused(by: str) -> None:
    assert of_query(f"SELECT ts, src, count(*) AS n FROM a GROUP BY {by}") == [
        f"freshline.yml:9: tables.t.sql: {UNGROUPED}"
    ]


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        # What a row of a window is made of lies further back than the range that it is joined over.
        (
            "WITH h AS (SELECT ts, sum(n) OVER (PARTITION BY date_trunc('hour', ts)) AS n FROM a) "
            "SELECT greatest(h.ts, b.at) AS ts, n FROM h JOIN b "
            "ON b.at BETWEEN h.ts AND h.ts + INTERVAL 5 MINUTES",
            "align: 1h, lookback: 5m,",
        ),
        (
            "SELECT greatest(a.ts, b.at) AS ts FROM a JOIN b "
            "ON abs(unix_timestamp(a.ts) - unix_timestamp(b.at)) <= 20",
            "lookback: 20s,",
        ),
        # Times are the same by place, not by name.
        ("SELECT ts, CAST(n AS timestamp) AS x FROM a UNION ALL SELECT CAST(n AS timestamp), ts FROM a", ""),
        ("WITH c (src, ts) AS (SELECT ts, timestamp_seconds(n) FROM a) SELECT ts FROM c", ""),
        ("SELECT ts FROM a UNPIVOT (ts FOR name IN (ts, until))", ""),
        # What an ANTI JOIN says is not so of the rows that are left.
        (
            "SELECT a.ts FROM a JOIN b ON a.src = b.src LEFT ANTI JOIN a c ON c.ts = a.ts AND a.ts = b.at",
            "",
        ),
        # The newest of two is near: the other may be as old as it likes.
        (
            "SELECT greatest(a.ts, b.at, c.ts) AS ts FROM a JOIN b ON a.src = b.src JOIN a c "
            "ON c.ts BETWEEN greatest(a.ts, b.at) - INTERVAL 1 HOUR AND greatest(a.ts, b.at)",
            "lookback: 1h,",
        ),
    ],
)
def test_what_only_seems_to_follow_time_is_refused(sql: str, keys: str) -> None:
    assert len(of_query(sql, keys)) == 1


def test_an_hour_may_be_compared_with_the_one_before() -> None:
    sql = (
        "WITH h AS (SELECT date_trunc('hour', ts) AS ts, count(*) AS n FROM a GROUP BY 1) "
        "SELECT greatest(x.ts, y.ts) AS ts, x.n - y.n AS more FROM h x JOIN h y "
        "ON y.ts = x.ts - INTERVAL 1 HOUR"
    )
    assert of_query(sql, "align: 1h, lookback: 1h,") == []
    (said,) = of_query(sql, "align: 1h, lookback: 59m,")
    assert said.endswith("Give at least 1h.")


def test_months_may_be_shown_beside_the_time() -> None:
    assert of_query("SELECT ts, date_trunc('month', ts) AS month, trunc(ts, 'YEAR') AS year FROM a") == []
