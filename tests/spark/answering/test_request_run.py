"""A request's answer from all slices is Spark's own; from some it is an estimate, and says how good a one."""

import random
import threading
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from cases import cases, rest_in_soak, sampled
from freshline.spark.answering.request_run import PartCancelled, RequestRun
from freshline.spark.answering.window_reading import session_for_queries
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.request_sql import RequestRefused
from freshline.sql.slices import NO_SLICE, SLICES
from freshline_lab.campaigns.sql.request_equality import difference
from freshline_lab.campaigns.sql.request_statements import RequestStatements
from freshline_lab.campaigns.sql.sliced_tables import START_US, SlicedTables, random_tables
from patience import PATIENCE_S

LONG = dict.fromkeys("abc", ("bigint", "bigint"))
BY_KEY = {"a": "{by: k}", "b": "{by: k}", "c": "{by: j}"}


@sampled(3, one_in=3, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=[Phase.generate])
@given(seed=st.integers(0, 1 << 32))
def test_all_slices_in_whatever_parts_give_the_exact_answer(spark, seed: int) -> None:
    rng, statements = random.Random(seed), RequestStatements(seed)
    with TemporaryDirectory() as folder:
        tables = random_tables(spark, Path(folder), seed, {}, 1)
        session = session_for_queries(spark)
        for _ in range(cases(4, one_in=2)):
            assert difference(tables, session, statements.right(), rng) is None


def loaded(
    spark, folder: Path, slices: dict[str, str], types: dict[str, Any] = LONG, **rows: Any
) -> SlicedTables:
    tables = SlicedTables(spark, folder, slices, types, {}, 1)
    for name, each in rows.items():
        tables.load(name, [(START_US + 1 + at, *row) for at, row in enumerate(each)])
    return tables


def test_some_slices_give_estimates_with_intervals_and_outliers_exactly(spark, tmp_path: Path) -> None:
    rng = random.Random(1)
    values = [float(rng.randrange(100)) for _ in range(4_000)]
    for at in range(0, 4_000, 50):
        values[at] = 1_000_000.0 + at
    tables = loaded(
        spark, tmp_path, BY_KEY | {"a": "{outliers: v}"}, a=[(at % 2, v) for at, v in enumerate(values)]
    )
    sql = (
        "SELECT k, count(*) AS n, sum(v) AS s, avg(v), stddev(v), min(v), max(v) FROM a GROUP BY k "
        "HAVING count(*) > 10 ORDER BY k DESC LIMIT 9"
    )
    run = RequestRun(tables.asked(sql), session_for_queries(spark), tables.stored, start=200)
    assert run.answer().rows == ()
    run.read(16)
    answer = run.answer()
    assert (answer.share, answer.is_complete) == (1 / 16, False)
    assert answer.notes == ("HAVING, ORDER BY, LIMIT: applied to estimates",)
    assert answer.columns == ("k", "n", "s", "avg(v)", "stddev(v)", "min(v)", "max(v)")
    assert answer.freshness == {"a": START_US + 4_000}
    assert [row[0] for row in answer.rows] == [1, 0]
    for row, intervals, few in zip(answer.rows, answer.intervals, answer.few, strict=True):
        of_group = [value for at, value in enumerate(values) if at % 2 == row[0]]
        mean = sum(of_group) / len(of_group)
        deviation = (sum((value - mean) ** 2 for value in of_group) / (len(of_group) - 1)) ** 0.5
        for place, truth in ((1, len(of_group)), (2, sum(of_group)), (3, mean), (4, deviation)):
            interval = intervals[place]
            assert interval is not None
            assert interval[0] <= truth <= interval[1]
            assert interval[0] <= row[place] <= interval[1]
            assert interval[1] - interval[0] < 0.6 * truth
        # All rows of 1,000,000 and more are of one group, and known.
        assert (row[6] >= 1_000_000) == (row[0] == 0)
        assert [intervals[0], intervals[5], intervals[6]] == [None, None, None]
        assert few == (False,) * 7
    run.read(4)
    assert run.answer().share == 20 / 256


def test_values_of_few_rows_are_called_so_and_a_slice_alone_has_no_interval(spark, tmp_path: Path) -> None:
    rows = [(None, 1.0)] * 5_000 + [(7, 2.0)] * 40
    tables = loaded(spark, tmp_path, BY_KEY, a=rows)
    run = RequestRun(tables.asked("SELECT k, count(*), sum(v) FROM a GROUP BY k"), spark, tables.stored, 0)
    run.read(1)
    assert {
        row[0]: intervals for row, intervals in zip(run.answer().rows, run.answer().intervals, strict=True)
    }[None] == (None, None, None)
    run.read(SLICES - 2)
    answer = run.answer()
    found = {row[0]: at for at, row in enumerate(answer.rows)}
    assert answer.few[found[None]] == (False, False, False)
    # All rows of a key are in one slice.
    assert (answer.rows[found[7]][1:], answer.few[found[7]]) == ((40, 80), (False, False, False))
    assert answer.intervals[found[7]] == (None, (40.0, 40.0), (80.0, 80.0))
    other = RequestRun(
        tables.asked("SELECT v, count(*) AS n FROM a WHERE v = 2 GROUP BY v"), spark, tables.stored, 0
    )
    other.read(SLICES - 1)
    assert all(
        few == (False, True) or row[1] >= 30
        for row, few in zip(other.answer().rows, other.answer().few, strict=True)
    )


def test_distinct_keys_are_counted_in_slices_and_scale(spark, tmp_path: Path) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, a=[(at % 2_000, 1.0) for at in range(6_000)])
    run = RequestRun(
        tables.asked("SELECT count(DISTINCT k) FROM a"), session_for_queries(spark), tables.stored, 3
    )
    assert not run.is_whole
    run.read(64)
    ((value,),), ((interval,),) = run.answer().rows, run.answer().intervals
    assert interval is not None
    assert interval[0] <= 2_000 <= interval[1]
    assert 1_500 < value < 2_500
    run.read(SLICES)
    assert run.answer().rows == ((2_000,),)


def test_all_parts_read_the_tables_as_the_first_found_them(spark, tmp_path: Path) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, a=[(at, 1.0) for at in range(500)])
    run = RequestRun(tables.asked("SELECT count(*), sum(v) FROM a"), spark, tables.stored)
    run.read(100)
    tables.load("a", [(START_US + 10_000 + at, at, 5.0) for at in range(300)])
    tables.stored["a"].compact(64 << 20, 64 << 20)
    run.read(156)
    assert run.answer().rows == ((500, 500),)
    assert run.answer().freshness == {"a": START_US + 500}


def test_rows_of_another_writer_are_in_no_slice_and_read_with_the_first_part(spark, tmp_path: Path) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, a=[(at, 1.0) for at in range(200)])
    stored = tables.stored["a"]
    rows = {"ts": [datetime(2026, 1, 1, tzinfo=UTC)] * 7, "k": [1] * 7, "v": [10] * 7}
    foreign = pa.table({**rows, "_late": [False] * 7, SLICE_COLUMN: [None] * 7}, stored.schema)
    folder = tmp_path / "a" / "data" / "foreign"
    folder.mkdir(parents=True)
    pa.parquet.write_table(foreign, folder / "part-0.parquet")
    stored.commit("data/foreign", stored.freshness or 0, (), {})
    run = RequestRun(
        tables.asked("SELECT sum(v), max(v) FROM a"), session_for_queries(spark), tables.stored, 250
    )
    run.read(1)
    assert run.answer().rows[0][1] == 10
    while run.slices_left:
        run.read(51)
    assert run.answer().rows == ((270, 10),)


def test_types_of_keys_and_values_are_spark_s_own_and_nothing_at_all_is_no_trouble(
    spark, tmp_path: Path
) -> None:
    types = {**LONG, "a": ("decimal(9,2)", "decimal(12,3)")}
    tables = loaded(spark, tmp_path, BY_KEY, types, a=[(1, 2.5), (1, 3.25), (2, None)])
    sql = "SELECT k, ts, concat('k', k) AS t, sum(v) AS s, avg(v) AS m, max(ts) AS x FROM a GROUP BY 1, 2, 3"
    run = RequestRun(tables.asked(f"{sql} ORDER BY ts"), spark, tables.stored)
    assert not run.is_whole
    run.read(SLICES)
    answer = run.answer()
    assert answer.rows[0] == (
        Decimal("1.00"),
        datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        "k1.00",
        Decimal("2.500"),
        Decimal("2.5000000"),
        datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    )
    assert answer.rows[2][3:5] == (None, None)
    assert answer.table().schema.types == tables.exact_sql(sql).toArrow().schema.types
    empty = RequestRun(tables.asked("SELECT count(*), sum(x), variance(x) FROM c"), spark, tables.stored)
    empty.read(10)
    assert empty.answer().rows == ((0, None, None),)
    none = RequestRun(tables.asked("SELECT j, count(*) FROM c GROUP BY j"), spark, tables.stored)
    none.read(10)
    assert none.answer().rows == ()


def test_what_spark_cannot_make_sense_of_or_would_never_end_is_refused(
    spark, tmp_path: Path, monkeypatch
) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, a=[(at, 1.0) for at in range(20)])
    for sql, code in [
        ("SELECT v FROM a WHERE nowhere > 1", "bad_sql"),
        ("SELECT _slice FROM a", "bad_sql"),
        ("SELECT k, v FROM a GROUP BY k", "bad_sql"),
        ("SELECT count(*) FROM a, b", "not_supported"),
        ("SELECT count(*) FROM a JOIN b ON a.k < b.k", "not_supported"),
    ]:
        with pytest.raises(RequestRefused) as refused:
            tables.asked(sql)
        assert refused.value.code == code
    monkeypatch.setattr("freshline.spark.answering.request_run.ROWS_MAX", 10)
    run = RequestRun(tables.asked("SELECT k FROM a"), spark, tables.stored)
    with pytest.raises(RequestRefused, match="more than 10 rows"):
        run.read(1)


def test_a_part_is_cancelled_at_once_and_what_was_read_before_stays(spark, tmp_path: Path) -> None:
    tables = SlicedTables(spark, tmp_path, BY_KEY, LONG, {}, 1)
    at = f"timestamp_micros({START_US} + id)"
    tables.write("a", spark.range(300_000).selectExpr(f"{at} AS ts", "id AS k", "id AS v"))
    hashed = [f"concat('{number}', v)" for number in range(10)]
    for _ in range(15):
        hashed = [f"sha2({each}, 512)" for each in hashed]
    asked = tables.asked(f"SELECT count(*), {', '.join(f'max({each})' for each in hashed)} FROM a")
    run = RequestRun(asked, session_for_queries(spark), tables.stored)
    run.read(1)
    before = run.answer()
    ended: list[BaseException] = []

    def read() -> None:
        try:
            run.read(SLICES)
        except BaseException as error:
            ended.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    tracker = spark.sparkContext.statusTracker()
    while not tracker.getActiveJobsIds():
        reader.join(0.01)
        assert reader.is_alive()
    assert run.answer().rows == before.rows
    run.cancel()
    reader.join(PATIENCE_S)
    assert [type(error) for error in ended] == [PartCancelled]
    while tracker.getActiveStageIds():
        reader.join(0.01)
    assert run.answer() == before
    with pytest.raises(PartCancelled):
        run.read(1)
    # Nothing else is: neither the thread that cancelled nor another request of the session.
    other = RequestRun(tables.asked("SELECT count(*) FROM a"), spark, tables.stored)
    other.read(SLICES)
    assert other.answer().rows == ((300_000,),)


def test_outliers_are_the_largest_of_each_update_and_compaction_keeps_them(spark, tmp_path: Path) -> None:
    slices = BY_KEY | {"a": "{by: k, outliers: v}"}
    tables = SlicedTables(spark, tmp_path, slices, {**LONG, "a": ("bigint", "double")}, {}, 1)
    rng = random.Random(3)
    for _ in range(9):
        tables.load(
            "a", [(START_US + 1, rng.randrange(9), rng.choice([None, rng.gauss(0, 5)])) for _ in range(100)]
        )
    stored = tables.stored["a"]

    def outliers() -> list[float]:
        found = [pa.parquet.read_table(stored.path / file.path, partitioning=None) for file in stored.files]
        rows = pa.concat_tables(found).to_pylist()
        return sorted(row["v"] for row in rows if row[SLICE_COLUMN] == NO_SLICE)

    expected = []
    for begin in range(0, 900, 100):
        values = [row[2] for row in tables.rows["a"][begin : begin + 100] if row[2] is not None]
        expected += sorted(values, key=abs)[-3:]
    assert outliers() == sorted(expected)
    assert stored.compact(64 << 20, 64 << 20)
    assert len(stored.files) == 1
    assert outliers() == sorted(expected)


@pytest.mark.parametrize(
    "sql",
    rest_in_soak(
        [
            "SELECT count(*) AS n FROM a WHERE ts < now() - INTERVAL 1 HOUR",
            "SELECT count(*) AS n FROM a WHERE ts < current_timestamp AND ts < current_date()",
            "SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM a GROUP BY date_trunc('minute', ts)",
            "SELECT date_trunc('hour', ts), count(*) FROM a GROUP BY 1",
            "SELECT trunc(ts, 'month') AS m, count(*) AS n FROM a GROUP BY trunc(ts, 'month')",
        ],
        first=2,
    ),
)
def test_how_a_statement_is_spelled_does_not_make_it_whole(spark, tmp_path: Path, sql: str) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, a=[(at % 2, float(at)) for at in range(100)])
    prepared = tables.asked(sql)
    assert not prepared.is_whole
    run = RequestRun(prepared, session_for_queries(spark), tables.stored, start=0)
    run.read(100)
    run.read(SLICES)
    assert sum(row[-1] for row in run.answer().rows) == 100
