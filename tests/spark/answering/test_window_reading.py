"""An iteration of all slices is the exact answer; of some it is an estimate, and says how good a one."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st

from cases import cases, rest_in_soak, sampled
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.spark.answering.window_reading import session_for_queries
from freshline.sql.slices import SLICES
from freshline_lab.campaigns.sql.query_statements import QueryStatements
from freshline_lab.campaigns.sql.sliced_tables import START_US, SlicedTables, random_tables

LONG = dict.fromkeys("abc", ("bigint", "bigint"))
BY_KEY = {"a": "{by: k}", "b": "{by: k}", "c": "{by: j}"}


def as_rows(rows: Any) -> Counter[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
        return repr(value)

    return Counter(tuple((key, plain(value)) for key, value in row.items()) for row in rows)


def spark_rows(frame) -> Counter[tuple[Any, ...]]:
    return as_rows(frame.toArrow().to_pylist())


def cut(rng: random.Random) -> list[int]:
    """Parts of all slices."""
    sizes, left = [], SLICES
    while left and len(sizes) < 3:
        sizes.append(rng.randint(1, left))
        left -= sizes[-1]
    return [*sizes, left] if left else sizes


@sampled(6, one_in=6, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=[Phase.generate])
@given(seed=st.integers(0, 1 << 32))
def test_all_slices_in_whatever_parts_give_the_exact_answer(spark, seed: int) -> None:
    rng, statements = random.Random(seed), QueryStatements(seed)
    queries = {f"q{number}": statements.right().sql for number in range(cases(3, one_in=3))}
    with TemporaryDirectory() as folder:
        tables = random_tables(spark, Path(folder), seed, queries, rng.choice([5, 20, 40]) * SECOND)
        session = session_for_queries(spark)
        for name in queries:
            to_us = START_US + rng.choice([-1, 7, 20, 50]) * SECOND
            iteration = tables.prepared(name).begin(session, to_us)
            for slices in cut(rng):
                iteration.read(slices)
            assert iteration.slices_left == 0
            outcome = iteration.outcome()
            assert as_rows(outcome.answer.rows) == spark_rows(tables.exact(name, to_us)), queries[name]
            assert outcome.answer.estimates == ()
            assert outcome.keep == 1
            assert outcome.rows_seen == iteration.rows()


def loaded(spark, folder: Path, slices: dict[str, str], queries: dict[str, str], **rows: Any) -> SlicedTables:
    tables = SlicedTables(spark, folder, slices, LONG, queries, 100 * SECOND)
    for name, each in rows.items():
        tables.load(name, [(START_US + 1 + at, *row) for at, row in enumerate(each)])
    return tables


END_US = START_US + 50 * SECOND


def test_counts_and_sums_are_scaled_and_say_how_far_off_they_may_be(spark, tmp_path: Path) -> None:
    rng = random.Random(1)
    sql = "SELECT count(*) AS n, sum(v) AS s, avg(v) AS m, min(v) AS low, max(v) AS high"
    sql += ", count(*) FILTER (WHERE v > 49) AS some, 2 * sum(v) / nullif(count(*), 0) AS twice FROM a"
    values = [float(rng.randrange(100)) for _ in range(4_000)]
    tables = loaded(spark, tmp_path, BY_KEY | {"a": "{}"}, {"q": sql}, a=[(1, each) for each in values])
    iteration = tables.prepared("q").begin(spark, END_US, first=200)
    for read, slices in ((64, 64), (128, 64)):
        iteration.read(slices)
        outcome = iteration.outcome()
        (row,) = outcome.answer.rows
        assert outcome.keep == read / SLICES
        seen = outcome.rows_seen
        assert isclose(row["n"], seen * SLICES / read, abs_tol=1)
        by_column = {estimate.column: estimate for estimate in outcome.answer.estimates}
        truths = {"n": 4_000, "s": sum(values), "m": sum(values) / 4_000, "twice": 2 * sum(values) / 4_000}
        truths["some"] = sum(value > 49 for value in values)
        assert list(row) == ["n", "s", "m", "low", "high", "some", "twice"]
        for column, truth in truths.items():
            estimate = by_column[column]
            assert estimate.value == row[column]
            assert estimate.low is not None
            assert estimate.high is not None
            assert estimate.low <= truth <= estimate.high
            assert estimate.high - estimate.low < truth / 2
        assert (by_column["low"].low, by_column["low"].high) == (None, row["low"])
        assert (by_column["high"].low, by_column["high"].high) == (row["high"], None)
    assert seen < 4_000
    record = outcome.record("q", END_US, END_US + SECOND, END_US + SECOND)
    assert record["met"]
    assert record["state"] == "ANSWERED"
    assert record["window"] == [END_US / SECOND - 100, END_US / SECOND]
    assert record["estimates"][0]["row"] == 0


def test_an_answer_without_any_slice_says_so(spark, tmp_path: Path) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, {"q": "SELECT count(*) AS n FROM a"}, a=[(1, 1.0)] * 10)
    record = tables.prepared("q").begin(spark, END_US).outcome().record("q", END_US, END_US, END_US)
    assert (record["keep"], record["state"]) == (0, "NOTHING_READ")
    assert (record["rows"], record["rows_seen"]) == ([], 0)


def test_groups_by_what_rows_are_dealt_by_are_whole_and_not_scaled(spark, tmp_path: Path) -> None:
    sql = "SELECT k, count(*) AS n, sum(v) AS s FROM a GROUP BY k"
    rows = [(key, float(key)) for key in range(300) for _ in range(3)] + [(None, 1.0)] * 900
    tables = loaded(spark, tmp_path, BY_KEY, {"q": sql}, a=rows)
    iteration = tables.prepared("q").begin(spark, END_US)
    iteration.read(128)
    answer = iteration.outcome().answer
    assert 50 < len(answer.rows) < 300
    for row in answer.rows:
        if row["k"] is not None:
            assert (row["n"], row["s"]) == (3, 3 * row["k"])
    (without_key,) = [number for number, row in enumerate(answer.rows) if row["k"] is None]
    assert {estimate.row for estimate in answer.estimates} == {without_key}
    assert 700 < answer.rows[without_key]["n"] < 1_100


@pytest.mark.parametrize("third", rest_in_soak(["{}", ""]))
def test_slices_of_two_tables_join_with_themselves_and_a_third_is_read_whole(
    spark, tmp_path: Path, third: str
) -> None:
    sql = "SELECT a.k, b.w, c.x FROM a JOIN b ON a.k = b.k JOIN c ON c.j = a.v"
    slices = BY_KEY | {"c": third}
    tables = loaded(
        spark,
        tmp_path,
        slices,
        {"q": sql},
        a=[(key, float(key % 5)) for key in range(200)],
        b=[(key, float(key)) for key in range(0, 200, 2)],
        c=[(number, float(number)) for number in range(5)],
    )
    prepared = tables.prepared("q")
    assert prepared.sliced == {0, 1}
    iteration = prepared.begin(session_for_queries(spark), END_US)
    iteration.read(128)
    half = iteration.outcome()
    assert half.answer.estimates == ()
    assert 20 < len(half.answer.rows) < 80
    assert all(row["k"] == row["w"] and row["x"] == row["k"] % 5 for row in half.answer.rows)
    iteration.read(500)
    assert sorted(row["k"] for row in iteration.outcome().answer.rows) == list(range(0, 200, 2))
    assert iteration.outcome().rows_seen == 305


def test_decimals_averages_and_nothing_at_all_are_as_spark_has_them(spark, tmp_path: Path) -> None:
    sql = "SELECT k, avg(v) AS m, sum(v) AS s, min(v) AS low FROM a GROUP BY k"
    types = {**LONG, "a": ("int", "decimal(12,3)")}
    queries = {"q": sql, "all": "SELECT count(*) AS n, sum(v) AS s, max(v) AS x FROM a WHERE v > 1000"}
    tables = SlicedTables(spark, tmp_path, BY_KEY | {"a": "{}"}, types, queries, 100 * SECOND)
    rng = random.Random(2)
    tables.load("a", [(START_US + 1, rng.randrange(3), rng.randrange(10**6) / 1000) for _ in range(300)])
    for name in queries:
        iteration = tables.prepared(name).begin(spark, END_US)
        for _ in range(4):
            iteration.read(64)
        found = iteration.outcome().answer.rows
        assert as_rows(found) == spark_rows(tables.exact(name, END_US))
    assert found == ({"n": 0, "s": None, "x": None},)
    nothing = tables.prepared("q").begin(spark, END_US)
    assert (nothing.outcome().answer.rows, nothing.outcome().keep) == ((), 0)


def test_what_sqlglot_would_write_otherwise_is_refused(spark, tmp_path: Path, monkeypatch) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, {"q": "SELECT sum(v) AS s FROM a WHERE v > 1"})
    monkeypatch.setattr(
        "freshline.spark.answering.window_reading.as_written", lambda select: "SELECT sum(v) AS s FROM a"
    )
    with pytest.raises(InputError, match="cannot be rewritten"):
        tables.prepared("q")


def test_an_error_names_the_query_and_its_line(spark, tmp_path: Path) -> None:
    sql = "SELECT sum(CAST(v AS string)) AS s, max(struct(v)) AS m FROM a"
    with pytest.raises(InputError) as raised:
        loaded(spark, tmp_path, BY_KEY, {"q": sql}).prepared("q")
    assert raised.value.place is not None
    assert raised.value.place.line > 0
    assert "q" in raised.value.what.replace("`", " ").replace(":", " ").replace(".", " ").split()


def test_spark_s_refusal_of_a_query_leaves_no_stack_trace(spark, tmp_path: Path, capfd) -> None:
    with pytest.raises(InputError, match="Spark refuses query q"):
        loaded(spark, tmp_path, BY_KEY, {"q": "SELECT substring(v, 1, 2, 3) AS s FROM a"}).prepared("q")
    assert capfd.readouterr().err == ""


def rows_read(spark, work: Callable[[], None]) -> int:
    """By Spark, from files."""
    context = spark.sparkContext
    store, bus = context._jsc.sc().statusStore(), context._jsc.sc().listenerBus()
    group = f"rows read {random.random()}"
    context.setJobGroup(group, group)
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    bus.waitUntilEmpty()
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs for stage in job.stageIds}
    return sum(store.lastStageAttempt(stage).inputRecords() for stage in stages)


@pytest.mark.parametrize("first", rest_in_soak([10, 200]))
def test_of_slices_that_are_not_asked_for_few_rows_are_read_and_of_a_table_read_whole_all(
    spark, tmp_path: Path, monkeypatch, first: int
) -> None:
    monkeypatch.setattr("freshline.storage.delta.sliced_files.GROUP_BYTES", 1 << 14)
    slices, session = BY_KEY | {"c": "{}"}, session_for_queries(spark)
    queries = {
        "alone": "SELECT count(*) AS n FROM a WHERE v > -1",
        "whole": "SELECT count(*) AS n FROM a JOIN c ON c.j = a.v",
    }
    tables = SlicedTables(spark, tmp_path, slices, LONG, queries, 100 * SECOND)
    rows = spark.range(40_000).selectExpr(
        f"timestamp_micros({START_US} + 1 + id) AS ts", "id AS k", "id AS v"
    )
    tables.write("a", rows)
    tables.write("c", rows.selectExpr("ts", "k AS j", "v AS x"))
    for name, of_whole in (("alone", 0), ("whole", 40_000)):
        iteration = tables.prepared(name).begin(session, END_US, first)
        read = rows_read(session, partial(iteration.read, 128)) - of_whole
        assert 19_000 < read < 25_000
        iteration.read(128)
        assert iteration.outcome().answer.rows == ({"n": 40_000},)


def test_other_windows_and_slices_are_read_with_the_code_that_spark_has(spark, tmp_path: Path) -> None:
    sql = "SELECT a.k % 3 AS g, sum(b.w) AS s FROM a JOIN b ON a.k = b.k WHERE a.v > 1 GROUP BY a.k % 3"
    rows = [(key, float(key)) for key in range(500)]
    tables = loaded(spark, tmp_path, BY_KEY, {"q": sql}, a=rows, b=rows)
    prepared, session = tables.prepared("q"), session_for_queries(spark)
    metrics = session._jvm.org.apache.spark.metrics.source.CodegenMetrics
    compiled = set()
    for number, slices in enumerate([256, 128, 7, 200, 1]):
        prepared.begin(session, END_US - number, first=number * 60).read(slices)
        compiled.add(metrics.METRIC_COMPILATION_TIME().getCount())
    assert len(compiled) == 1


def test_an_iteration_begins_with_any_slice(spark, tmp_path: Path) -> None:
    tables = loaded(spark, tmp_path, BY_KEY, {"q": "SELECT count(*) AS n FROM a"}, a=[(1, 1.0)])
    prepared = tables.prepared("q")
    assert len({prepared.begin(spark, END_US)._reading.first for _ in range(100)}) > 50


def test_the_case_of_a_unit_does_not_matter(spark, tmp_path: Path) -> None:
    sql = "SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM a GROUP BY date_trunc('minute', ts)"
    tables = loaded(spark, tmp_path, BY_KEY, {"q": sql}, a=[(at % 2, float(at)) for at in range(100)])
    iteration = tables.prepared("q").begin(session_for_queries(spark), END_US)
    iteration.read(SLICES)
    assert sum(row["n"] for row in iteration.outcome().answer.rows) == 100
