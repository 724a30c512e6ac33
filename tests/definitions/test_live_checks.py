"""What a user reads when a warehouse can be planned, but not run."""

from pathlib import Path

import pytest

from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.load import load, loads
from freshline.planning.plan.make import make_plan
from refused_runs import (
    AS_IT_IS,
    BY_TIME,
    GREATEST,
    HEAD,
    MINUTES,
    RANGE,
    UNGROUPED,
    complaints,
    of_query,
    of_select,
)

AS_JOIN = "Write it as a join on equal timestamps, or on timestamps within a range of each other."
FIXED = "Use windows of a fixed length that do not overlap."
KNOWN_CUTS = (
    "Cut it with date_trunc('hour', ts), with window(ts, '1 hour') or with floor, as in "
    "timestamp_seconds(floor(unix_seconds(ts) / 10) * 10)."
)
CUT_UNKNOWN = f"it groups by time cut in a way whose windows are not known. {KNOWN_CUTS}"
LIMITED = "LIMIT and OFFSET select other rows when more rows arrive. Remove them; select the rows with WHERE."
NO_COLUMN = "it gives no column `ts`. Select one of that name, or name the timestamp column with `timestamp`."
COMPARED = "it compares records with each other. Load each record by itself."
MISTYPED = "the timestamp column `ts` is not of the type timestamp. Declare it as `ts timestamp`."


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM a",
        "SELECT ts, src FROM a WHERE n > 1 ORDER BY n",
        "SELECT ts, src, sum(n) AS n FROM a GROUP BY ts, src HAVING sum(n) > 1",
        "SELECT ts, src, count(*) AS n FROM a GROUP BY ts, ROLLUP (src)",
        "SELECT DISTINCT ts, src FROM a",
        "SELECT ts, sum(n) OVER (PARTITION BY ts ORDER BY src) AS n FROM a",
        "SELECT ts, sum(n) OVER w AS n FROM a WINDOW w AS (PARTITION BY ts)",
        "SELECT a.ts, b.src FROM a JOIN b ON a.ts = b.at",
        "SELECT a.ts, b.src FROM a, b WHERE b.at = a.ts AND a.src = b.src",
        "SELECT x.ts FROM a x JOIN a y ON x.ts = y.ts JOIN b ON y.ts = b.at",
        "SELECT ts FROM a JOIN (SELECT at AS ts, src FROM b) c USING (ts, src)",
        "SELECT ts FROM a NATURAL JOIN (SELECT at AS ts, src FROM b) c",
        "SELECT a.ts FROM a LEFT SEMI JOIN b ON a.ts = b.at AND a.src = b.src",
        "SELECT a.ts FROM a LEFT ANTI JOIN b ON a.ts = b.at",
        "SELECT a.ts, v.x FROM a CROSS JOIN VALUES (1), (2) AS v (x)",
        "SELECT ts, part FROM a LATERAL VIEW explode(split(src, ',')) parts AS part",
        "SELECT ts, src FROM a UNION ALL SELECT at, src FROM b",
        "SELECT ts, src FROM a EXCEPT SELECT at, src FROM b",
        "WITH c (t, n) AS (SELECT ts, count(*) FROM a GROUP BY ts) SELECT t AS ts, n FROM c",
        "FROM a |> WHERE n > 0 |> AGGREGATE sum(n) AS n GROUP BY ts |> SELECT ts, n",
    ],
)
def test_a_query_that_follows_its_sources_in_time_is_fine(sql: str) -> None:
    assert of_query(sql) == []


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT window.start AS ts, count(*) AS n FROM a GROUP BY window(ts, '1 hour')", "align: 1h,"),
        ("SELECT window_time(window) AS ts, src FROM a GROUP BY window(ts, '30 min'), src", "align: 1h,"),
        ("SELECT date_trunc('minute', ts) AS ts, count(*) AS n FROM a GROUP BY 1", "align: 5m,"),
        ("SELECT date_trunc('HOUR', ts) AS ts, src, sum(n) AS n FROM a GROUP BY ALL", "align: 1h,"),
        ("SELECT date_trunc('hour', ts) AS h, max(ts) AS ts FROM a GROUP BY h", "align: 1h,"),
        ("SELECT timestamp_seconds(unix_timestamp(ts) DIV 60 * 60) AS ts FROM a GROUP BY 1", "align: 1m,"),
        ("SELECT a.ts FROM a JOIN b ON date_trunc('hour', a.ts) = date_trunc('hour', b.at)", "align: 1h,"),
        ("SELECT w.start AS ts FROM (SELECT window(ts, '1 hour') AS w, n FROM a)", "align: 1h,"),
        (f"{GREATEST} {RANGE}", "lookback: 1h,"),
        (
            f"{GREATEST} FROM a, b WHERE a.ts >= b.at AND a.ts < b.at + INTERVAL 5 MINUTES",
            "lookback: 5m,",
        ),
        (
            f"{GREATEST} FROM a JOIN b ON abs(unix_micros(a.ts) - unix_micros(b.at)) < 9",
            "lookback: 1s,",
        ),
        (f"{GREATEST} FROM a JOIN b ON a.ts - b.at {MINUTES}", "lookback: 1h,"),
        (
            f"SELECT date_trunc('hour', greatest(a.ts, b.at)) AS ts, count(*) AS n {RANGE} GROUP BY 1",
            "lookback: 1h, align: 1h,",
        ),
    ],
)
def test_windows_with_align_and_ranges_with_lookback_are_fine(sql: str, keys: str) -> None:
    assert of_query(sql, keys) == []


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT src, sum(n) AS n FROM a GROUP BY src", UNGROUPED),
        ("SELECT ts, try_sum(n) FROM a", UNGROUPED),
        ("SELECT max(ts) AS ts FROM a GROUP BY hour(ts)", CUT_UNKNOWN),
        ("SELECT window.start AS ts FROM a GROUP BY window(ts, '1 hour', '5 minutes')", CUT_UNKNOWN),
        (
            "SELECT window.start AS ts FROM a GROUP BY window(ts, '1 hour', '1 hour', '5 minutes')",
            CUT_UNKNOWN,
        ),
        (
            "SELECT timestamp_seconds(unix_seconds(ts) - pmod(unix_seconds(ts), 10)) AS ts FROM a GROUP BY 1",
            CUT_UNKNOWN,
        ),
        (
            "SELECT ts, sum(n) OVER (PARTITION BY date_format(ts, 'yyyy-MM-dd HH')) FROM a",
            f"it has a PARTITION BY with time cut in a way whose windows are not known. {KNOWN_CUTS}",
        ),
        ("SELECT ts, src FROM a GROUP BY ROLLUP (ts, src)", UNGROUPED),
        (
            "SELECT a.ts FROM a JOIN (SELECT src, count(*) AS n FROM a GROUP BY src) c ON c.src = a.src",
            UNGROUPED,
        ),
        ("SELECT DISTINCT src FROM a", f"DISTINCT compares rows without their timestamps. {BY_TIME}"),
        (
            "SELECT src FROM a INTERSECT SELECT src FROM b",
            f"INTERSECT compares rows without their timestamps. {BY_TIME}",
        ),
        (
            "SELECT ts, lag(n) OVER (PARTITION BY src ORDER BY ts) FROM a",
            f"it has a window function without the time in its PARTITION BY. {BY_TIME}",
        ),
        (
            "SELECT a.ts FROM a LEFT JOIN b ON a.ts = b.at",
            "the LEFT JOIN gives a row that a later match would have to take back. Write an inner join.",
        ),
        (
            "SELECT a.ts FROM a LEFT ANTI JOIN b ON a.src = b.src",
            f"the ANTI JOIN is not on equal timestamps. {AS_JOIN}",
        ),
        (
            "SELECT ts FROM a WHERE src IN (SELECT src FROM b)",
            f"a subquery stands in an expression. {AS_JOIN}",
        ),
        (
            "SELECT a.ts FROM a JOIN LATERAL (SELECT * FROM b WHERE b.at = a.ts) c",
            f"a subquery stands in a LATERAL. {AS_JOIN}",
        ),
        ("SELECT ts FROM a LIMIT 5", LIMITED),
        ("WITH c AS (SELECT ts FROM a OFFSET 5) SELECT * FROM c", LIMITED),
        (
            "WITH RECURSIVE r AS (SELECT ts FROM a UNION ALL SELECT ts FROM r) SELECT * FROM r",
            "WITH RECURSIVE has no end in time. Write it without recursion.",
        ),
        ("SELECT * FROM a TABLESAMPLE (10 PERCENT)", "TABLESAMPLE selects other rows each time. Remove it."),
        (
            "SELECT * FROM a PIVOT (sum(n) FOR src IN ('x', 'y'))",
            "PIVOT does not group by time. Write it with GROUP BY and the timestamp.",
        ),
        (
            "SELECT * FROM (a JOIN b ON a.ts = b.at)",
            "it has a form that Freshline does not understand. Write it with SELECT and JOIN.",
        ),
        (
            f"SELECT a.ts {RANGE}",
            "it joins over a range of time, and none of its columns is the greatest of the timestamps. "
            "Select the greatest of all, such as `greatest(a.ts, b.ts) AS ts`.",
        ),
        (
            "SELECT src FROM a",
            NO_COLUMN,
        ),
        ("SELECT n AS ts FROM a", f"its column `ts` is not the timestamp of what it reads. {AS_IT_IS}"),
        (
            "SELECT ts + INTERVAL 1 HOUR AS ts FROM a",
            f"its column `ts` is not the timestamp of what it reads. {AS_IT_IS}",
        ),
        (
            "SELECT window.end AS ts FROM a GROUP BY window(ts, '1 hour')",
            f"its column `ts` is not the timestamp of what it reads. {AS_IT_IS}",
        ),
        (
            "SELECT ts FROM a UNION ALL SELECT TIMESTAMP '2026-01-01' FROM b",
            f"its column `ts` is not the timestamp of what it reads. {AS_IT_IS}",
        ),
        (
            "SELECT window.start AS ts FROM a GROUP BY window(ts, '1 hour', '5 minutes')",
            f"it has windows that overlap, or begin at an offset. {FIXED}",
        ),
        (
            "SELECT count(*) AS n FROM a GROUP BY session_window(ts, '5 minutes')",
            f"it has sessions, which have no fixed edges. {FIXED}",
        ),
        (
            "SELECT date_trunc('week', ts) AS ts FROM a GROUP BY 1",
            f"it has weeks or longer, whose edges are not at whole multiples of a length since 1970. {FIXED}",
        ),
        (
            "SELECT ts, n AS _late FROM a",
            "its column `_late` is one that Freshline adds itself. Give it another name.",
        ),
    ],
)
def test_a_query_that_would_not_hold_what_it_says_is_refused(sql: str, message: str) -> None:
    assert message in [said.removeprefix("freshline.yml:9: tables.t.sql: ") for said in of_query(sql)]


def test_a_query_that_groups_by_windows_that_overlap_is_not_told_that_it_does_not_group_by_time() -> None:
    said = of_query("SELECT window.start AS ts FROM a GROUP BY window(ts, '1 hour', '5 minutes')")
    assert [each.removeprefix("freshline.yml:9: tables.t.sql: ") for each in said] == [
        CUT_UNKNOWN,
        f"it has windows that overlap, or begin at an offset. {FIXED}",
    ]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("localtimestamp", "localtimestamp"),
        ("current_time(3)", "current_time"),
        ("localtime()", "localtime"),
        ("date_add(DATE 'today', 1)", "'today'"),
        ("TIMESTAMP ' Now '", "'now'"),
        ("TIMESTAMP 'today UTC'", "'today utc'"),
        (r"TIMESTAMP '\x01now\x85'", "'now'"),
        ("TIMESTAMP_NTZ 'now'", "'now'"),
        ("to_date('now')", "'now'"),
        ("to_timestamp('now')", "'now'"),
        ("try_to_timestamp('now')", "'now'"),
        ("to_timestamp_ltz('now')", "'now'"),
        ("to_timestamp_ntz('now')", "'now'"),
        ("try_cast('now' AS timestamp)", "'now'"),
        ("year('now')", "'now'"),
        ("hour('now')", "'now'"),
        ("date_add('today', 1)", "'today'"),
        ("date_trunc('day', 'now')", "'now'"),
        ("date_format('now', 'y')", "'now'"),
        ("(ts > 'today')", "'today'"),
        ("(ts < ('now'))", "'now'"),
        ("('tomorrow' >= ts)", "'tomorrow'"),
        ("(ts < 'yesterday UTC')", "'yesterday utc'"),
        ("(ts < 'Today Europe/Berlin')", "'today europe/berlin'"),
        ("(ts IN ('2026-01-01', 'today'))", "'today'"),
        ("(ts BETWEEN '2026-01-01' AND 'now')", "'now'"),
        ("coalesce(ts, 'now')", "'now'"),
        ("(CAST(ts AS date) < 'today')", "'today'"),
        ("getdate()", "getdate"),
        ("version()", "version"),
        ("randn()", "randn"),
        ("spark_partition_id()", "spark_partition_id"),
        ("_metadata.file_name", "_metadata"),
        ("aes_encrypt(src, 'abcdefghijklmnop')", "aes_encrypt"),
        ("rand()", "rand"),
        ("random(3)", "rand"),
        ("uniform(1, 5)", "uniform"),
        ("randstr(4)", "randstr"),
        ("upper(uuid())", "uuid"),
        ("shuffle(split(src, ','))", "shuffle"),
        ("monotonically_increasing_id()", "monotonically_increasing_id"),
        ("current_user()", "current_user"),
        ("reflect('java.util.UUID', 'randomUUID')", "reflect"),
    ],
)
def test_what_gives_something_else_each_time_is_refused(call: str, name: str) -> None:
    message = (
        f"`{name}` gives something else each time it is asked. "
        "Use only what the records say, such as their timestamps."
    )
    assert of_query(f"SELECT ts, {call} AS x FROM a") == [f"freshline.yml:9: tables.t.sql: {message}"]
    assert of_query(f"SELECT ts FROM a JOIN (SELECT at AS ts FROM b WHERE {call} IS NULL) USING (ts)") == [
        f"freshline.yml:9: tables.t.sql: {message}"
    ]
    assert of_select(f"SELECT ts, {call} AS x FROM a") == [f"freshline.yml:7: tables.a.select: {message}"]


@pytest.mark.parametrize(
    "call", ["now()", "current_timestamp", "CURRENT_TIMESTAMP()", "current_date", "curdate()"]
)
def test_the_clock_of_a_table_is_its_freshness_and_of_a_record_there_is_none(call: str) -> None:
    sql = f"SELECT ts, {call} AS x FROM a"
    table = loads(f'{HEAD}  t: {{period: 1h, sql: "{sql}"}}\n').tables["t"]
    assert (table.refresh, len(table.full_because)) == ("full", 1)
    assert complaints(f'{HEAD}  t: {{period: 1h, sql: "{sql}"}}\n') == []
    assert "moves with the table's freshness" in of_query(sql)[0]
    assert "gives something else each time it is asked" in of_select(sql)[0]


def test_words_that_only_look_as_if_they_changed_are_fine() -> None:
    assert of_query("SELECT ts, `now`, `localtimestamp`, a.current_time AS b, 'now' AS c FROM a") == []
    assert of_query("SELECT ts, unix_timestamp(ts) AS x, TIMESTAMP '2026-01-01' AS y FROM a") == []
    assert of_query("SELECT ts, CAST(src AS timestamp) AS x, CAST('now' AS string) AS y FROM a") == []
    assert of_query("SELECT ts FROM a WHERE src = 'now' OR src IN ('today') OR upper(src) < 'now'") == []
    assert of_query("SELECT ts, date_add(ts, 1) AS x, ts > '2026-01-01' AS y, src || 'now' FROM a") == []
    assert of_query("SELECT ts, ts > 'epoch' AS x, make_date(2026, 1, 1) AS y FROM a") == []


def test_a_feed_may_have_a_column_of_the_name_that_spark_has_for_files() -> None:
    head = HEAD.replace("m array<int>", "_metadata struct<host: string>")
    sql = "SELECT at AS ts, _metadata.host AS x FROM b"
    assert complaints(f'{head}  t: {{period: 1h, timestamp: ts, sql: "{sql}"}}\n') == []


def test_a_record_keeps_the_name_of_its_file_and_a_table_does_not() -> None:
    assert of_select("SELECT ts, input_file_name() AS file FROM a") == []
    assert "`input_file_name` gives something else" in of_query("SELECT ts, input_file_name() AS x FROM a")[0]


def test_a_very_long_value_is_repeated_in_part() -> None:
    with pytest.raises(InputError) as raised:
        loads(HEAD.replace("format: csv", f"format: {'x' * 5_000}"))
    assert str(raised.value) == (
        f"freshline.yml:4: feeds.a.format: '{'x' * 100}…' is not a choice here. "
        "Write 'csv', 'json' or 'parquet'."
    )


def test_a_select_may_do_anything_with_one_record() -> None:
    assert of_select("SELECT ts, explode(split(src, ',')) AS src FROM a WHERE n > 0") == []
    assert (
        of_select("SELECT ts AS time, n + 1 AS n FROM a UNION ALL SELECT ts, 0 FROM a", "timestamp: time,")
        == []
    )


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT ts, sum(n) AS n FROM a GROUP BY ts", COMPARED),
        ("SELECT DISTINCT ts FROM a", COMPARED),
        (
            "SELECT x.ts FROM a x JOIN a y ON x.ts = y.ts",
            "it joins the feed with itself. Load each record by itself; join in another table.",
        ),
        (
            "SELECT date_trunc('hour', ts) AS ts FROM a",
            f"its column `ts` is not the timestamp of what it reads. {AS_IT_IS}",
        ),
        (
            "SELECT src FROM a",
            NO_COLUMN,
        ),
    ],
)
def test_a_select_over_several_records_is_refused(select: str, message: str) -> None:
    assert of_select(select) == [f"freshline.yml:7: tables.a.select: {message}"]


def test_what_a_plan_does_without_is_asked_for() -> None:
    text = """\
name: network
pools: {updates: {tracks: 1}}
feeds:
  bare: {period: 1s}
  stream: {arrival: continuous, period: 1s}
  unused: {period: 1s}
tables:
  bare: {feed: bare}
  stream: {feed: stream}
  query: {sql: SELECT * FROM bare, period: 1s}
  outline: {sources: [bare], period: 1s}
"""
    needed = "is missing, and a run needs it."
    assert complaints(text) == [
        f"freshline.yml:4: feeds.bare: `path` {needed} "
        "Add the directory in which its files land, such as `path: landing/packets`.",
        f"freshline.yml:4: feeds.bare: `format` {needed} Add `format: csv`, `json` or `parquet`.",
        f"freshline.yml:4: feeds.bare: `schema` {needed} "
        "Add its columns, such as `schema: ts timestamp, src string, bytes long`.",
        f"freshline.yml:4: feeds.bare: `timestamp` {needed} "
        "Add the column that says when a record was made, such as `timestamp: ts`.",
        "freshline.yml:5: feeds.stream: a continuous feed cannot be run yet. "
        "Let its data come in files (`arrival: files`); `plan` and `simulate` accept it.",
        "freshline.yml:6: feeds.unused: no table loads it. "
        "Load it with a table, or remove it; `plan` and `simulate` accept it.",
        f"freshline.yml:11: tables.outline: `sql` {needed} "
        "Add the query that gives its rows; `plan` and `simulate` do not need it.",
    ]


@pytest.mark.parametrize(
    "feed", ["{arrival: continuous}", "{arrival: continuous, period: 1s}", "{period: 1s}"]
)
def test_a_feed_that_no_table_loads_can_be_planned_and_not_run(feed: str) -> None:
    """Nobody would hear from it but that it is silent."""
    costs = HEAD.replace("feed: a}", "feed: a, cost: {startup: 1s}}")
    costs = costs.replace("feed: b}", "feed: b, cost: {startup: 1s}}")
    text = costs.replace("feeds:\n", f"feeds:\n  idle: {feed}\n")
    assert make_plan(loads(text)).holds
    assert complaints(text) == [
        "freshline.yml:4: feeds.idle: no table loads it. "
        "Load it with a table, or remove it; `plan` and `simulate` accept it."
    ]
    assert complaints(costs) == []


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            "at timestamp, n long",
            "it has no column `ts`, the timestamp. Add it, or name another column with `timestamp`.",
        ),
        ("ts string", MISTYPED),
        ("ts long", MISTYPED),
        (
            "ts timestamp, m map<string, int>",
            "a csv file cannot hold the column `m`. Use `format: json` or `parquet`.",
        ),
        ("ts timestamp, ts date", "the column `ts` is declared twice. Remove one of the two."),
    ],
)
def test_a_schema_that_does_not_fit_its_feed_is_refused(schema: str, message: str) -> None:
    text = HEAD.replace("ts timestamp, src string, n long", schema)
    assert complaints(text) == [f"freshline.yml:4: feeds.a.schema: {message}"]


def test_columns_are_known_through_several_tables() -> None:
    hourly = "SELECT date_trunc('hour', ts) AS ts, count(*) AS n FROM a GROUP BY 1"
    tables = f'  hourly: {{period: 1h, align: 1h, sql: "{hourly}"}}\n'
    assert complaints(f"{HEAD}{tables}  copy: {{period: 1h, sql: SELECT * FROM hourly}}\n") == []
    without = "period: 1h, sql: SELECT * EXCEPT (ts) FROM hourly"
    assert complaints(f"{HEAD}{tables}  copy: {{{without}, timestamp: ts}}\n") == [
        "freshline.yml:10: tables.copy.sql: it gives no column `ts`. "
        "Select one of that name, or name the timestamp column with `timestamp`."
    ]
    copy = loads(f"{HEAD}{tables}  copy: {{{without}}}\n").tables["copy"]
    assert (copy.timestamp, copy.refresh) == (None, "full")


def test_the_example_can_be_planned_but_its_continuous_feed_cannot_be_run() -> None:
    with pytest.raises(DefinitionErrors) as raised:
        check_runnable(load(Path(__file__).parents[2] / "examples/network/freshline.yml"))
    assert "feeds.counters: a continuous feed cannot be run yet" in str(raised.value)


def test_a_long_condition_is_no_deep_one() -> None:
    long = " AND ".join(f"n <> {number}" for number in range(3_000))
    assert of_query(f"SELECT ts FROM a WHERE {long}") == []
    assert of_select(f"SELECT ts FROM a WHERE {long}") == []


def test_a_deep_schema_is_refused_with_a_sentence() -> None:
    text = HEAD.replace("m array<int>", f"m {'array<' * 2_000}int{'>' * 2_000}")
    assert complaints(text) == [
        "freshline.yml:5: feeds.b.schema: its types are nested too deeply. Declare plainer ones."
    ]
