"""The driver writes small results, executors write others, and readers see no difference."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pyspark import InheritableThread
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cases import sampled
from freshline.base.errors import InputError
from freshline.spark.errors import sentence
from freshline.spark.loading import sink as sinks
from freshline.spark.loading.sink import (
    Sink,
    SinkResult,
    carried,
    driver_limit,
    write_by_driver,
    write_by_executors,
)
from freshline.sql.columns import LATE_COLUMN
from freshline.storage.delta.statistics import InvalidText
from freshline.storage.delta.stored_table import NullTimestamps, StoredTable
from patience import PATIENCE_S, wait_until

MEGABYTE = 1 << 20
# Values of every type that Delta holds and Arrow carries, the extremes among them.
PLAIN = {
    "boolean": ["true", "false"],
    "tinyint": ["-128Y", "127Y"],
    "smallint": ["-32768S", "32767S"],
    "int": ["-2147483648", "0", "2147483647"],
    "bigint": ["-9223372036854775808L", "9223372036854775807L"],
    "float": ["float('1.5')", "float('-0.0')", "float('0.0')", "float('NaN')", "float('Infinity')"],
    "double": ["1.5D", "-0.0D", "0.0D", "double('NaN')", "double('-Infinity')", "double('4.9E-324')"],
    "decimal(7,2)": ["-12345.67", "99999.99"],
    "decimal(18,0)": ["-999999999999999999", "1"],
    "decimal(19,3)": ["-1234567890123456.789", "1"],
    "decimal(38,10)": ["-9999999999999999999999999999.9999999999", "0.0000000001"],
    "decimal(38,38)": ["0.99999999999999999999999999999999999999", "0"],
    "string": ["''", "'a'", "'é\U0001f600'", "repeat('z', 40)", "repeat('a', 5000)"],
    "binary": ["X''", "X'FF00'"],
    "date": ["DATE'0001-01-01'", "DATE'1582-10-04'", "DATE'9999-12-31'", "date_add(DATE'9999-12-31', 400)"],
    "timestamp": ["TIMESTAMP'0001-01-01 00:00:00'", "TIMESTAMP'1582-10-10 12:00:00.000001'",
                  "TIMESTAMP'+20000-01-01 00:00:00'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'1500-01-01 00:00:00.000001'", "TIMESTAMP_NTZ'9999-12-31 23:59:59'"],
}  # fmt: skip
Value = tuple[str, list[str]]  # a type, and expressions of it


def nested(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    arrays = inner.map(lambda it: (f"array<{it[0]}>", ["array()", *(f"array({x}, NULL)" for x in it[1])]))
    maps = inner.map(
        lambda it: (f"map<string,{it[0]}>", ["map()", *(f"map('k', {x}, 'l', NULL)" for x in it[1])])
    )
    structs = st.tuples(inner, inner).map(
        lambda it: (
            f"struct<a:{it[0][0]},b_c:{it[1][0]}>",
            [f"named_struct('a', {x}, 'b_c', NULL)" for x in it[0][1]]
            + [f"named_struct('a', NULL, 'b_c', {it[1][1][0]})"],
        )
    )
    return st.one_of(arrays, maps, structs)


# Of a `timestamp_ntz` in a map delta-rs makes no table.
IN_OTHERS = [(kind, values) for kind, values in PLAIN.items() if kind != "timestamp_ntz"]
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.sampled_from(list(PLAIN.items())), st.recursive(st.sampled_from(IN_OTHERS), nested, max_leaves=3)
)


def frame_of(spark, columns: list[Value]) -> DataFrame:
    """A row for each value, and one of nulls; columns with fewer values begin again."""
    rows = max(len(values) for _, values in columns)
    lines = []
    for number in range(rows + 1):
        cells = [values[number % len(values)] if number < rows else "NULL" for _, values in columns]
        kinds = enumerate(kind for kind, _ in columns)
        typed = [f"CAST({cell} AS {kind}) AS c{at}" for (at, kind), cell in zip(kinds, cells, strict=True)]
        late = f"{number} = 0 AS {LATE_COLUMN}"
        lines.append(f"SELECT timestamp_seconds({number}) AS ts, {', '.join(typed)}, {late}")
    return spark.sql(" UNION ALL ".join(lines)).coalesce(1)


def table_of(folder: Path, schema: StructType) -> StoredTable:
    return StoredTable.open_or_create(folder, "t", to_arrow_schema(schema, timezone="UTC"), "ts")


Way = Callable[[DataFrame, StoredTable, str], SinkResult]
WAYS: list[Way] = [write_by_driver, write_by_executors]


def committed(way: Way, frame: DataFrame, folder: Path) -> StoredTable:
    stored = table_of(folder, frame.schema)
    result = way(frame, stored, "data/1")
    stored.commit("data/1", 1, [], {}, written=result.files)
    return stored


def parquet_schema(stored: StoredTable) -> list[str]:
    """The types as the file has them; whether there may be nulls is a matter of Spark's optimizer."""
    (file,) = stored.files
    lines = str(pq.read_metadata(stored.path / file.path).schema).splitlines()[2:]
    return [line.replace("required", "optional") for line in lines]


def statistics(stored: StoredTable) -> dict[str, Any]:
    adds = [
        json.loads(line)["add"]
        for line in (stored.path / "_delta_log" / "00000000000000000001.json").read_text("utf-8").splitlines()
        if '"add"' in line
    ]
    (add,) = adds
    found: dict[str, Any] = json.loads(add["stats"])
    return found


# Spark takes seconds an example: it is not made smaller.
@sampled(6, one_in=3, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns=st.lists(VALUES, min_size=1, max_size=4))
def test_both_ways_give_the_same_table(spark, tmp_path: Path, columns: list[Value]) -> None:
    same_table(spark, tmp_path / uuid4().hex, columns)


def test_both_ways_give_the_same_table_of_every_type(spark, tmp_path: Path) -> None:
    same_table(spark, tmp_path, list(PLAIN.items()))


def same_table(spark, folder: Path, columns: list[Value]) -> None:
    frame = frame_of(spark, columns)
    assert carried(frame.schema)
    here, there = (committed(way, frame, folder / way.__name__) for way in WAYS)
    assert parquet_schema(here) == parquet_schema(there)
    known, expected = statistics(here), statistics(there)
    for at, (kind, _) in enumerate(columns):
        if kind in ("float", "double"):  # there is a NaN among them, of which Arrow makes no bound
            assert f"c{at}" not in known["minValues"].keys() | known["maxValues"].keys()
            expected["minValues"].pop(f"c{at}", None)
    assert known == expected
    # As JSON, for Python knows no year after 9999.
    read = [spark.read.parquet(*stored.files_between(None, 1 << 60)) for stored in (here, there)]
    rows = [[row[0] for row in each.selectExpr("to_json(struct(*))").collect()] for each in (*read, frame)]
    assert rows[0] == rows[1] == rows[2]


def test_a_delta_reader_reads_what_the_driver_wrote(spark, tmp_path: Path) -> None:
    columns = [(kind, values) for kind, values in PLAIN.items() if kind not in ("date", "timestamp")]
    frame = frame_of(spark, columns)
    stored = committed(write_by_driver, frame, tmp_path / "t")
    read = DeltaTable(stored.path).to_pyarrow_table()
    assert repr(sorted(read.to_pylist(), key=lambda row: row["ts"])) == repr(frame.toArrow().to_pylist())
    assert StoredTable.open(stored.path, "ts").files == stored.files


def test_a_variant_is_written_by_executors(spark, tmp_path: Path) -> None:
    variant = "parse_json('{\"a\": 1}')"
    for expression in (variant, f"array({variant})", f"map('k', {variant})", f"named_struct('v', {variant})"):
        frame = spark.sql(f"SELECT timestamp_seconds(1) AS ts, {expression} AS v")
        assert not carried(frame.schema)
    stored = table_of(tmp_path / "t", StructType(frame.schema.fields[:1]))
    assert Sink({"t": frame.schema}).write(frame, "t", stored, "data/1", 1) == SinkResult()
    assert Sink({"t": frame.schema}).try_out(frame, "t", stored, "data/2", 1) == SinkResult()
    assert len(list((tmp_path / "t/data").glob("*/*.parquet"))) == 2


def test_no_rows_make_no_file_and_late_ones_are_counted(spark, tmp_path: Path) -> None:
    frame = spark.sql(f"SELECT timestamp_seconds(id) AS ts, id % 3 = 0 AS {LATE_COLUMN} FROM range(10)")
    stored = table_of(tmp_path / "t", frame.schema)
    empty = write_by_driver(frame.where("ts IS NULL"), stored, "data/1")
    assert empty == SinkResult((), 0, 0)
    assert not (tmp_path / "t/data").exists()
    stored.commit("data/1", 1, [], {}, written=empty.files)
    assert (stored.sequence, stored.files) == (1, ())
    result = write_by_driver(frame, stored, "data/2")
    assert result.rows_late == 4
    stored.commit("data/2", 1, [], {}, written=result.files)
    assert sinks.count_late(stored, stored.files, 0) == 4
    # A table without such a column, as derived ones are, has none.
    assert write_by_driver(frame.drop(LATE_COLUMN), stored, "data/3").rows_late == 0


def test_rows_without_a_timestamp_are_refused_either_way(spark, tmp_path: Path) -> None:
    frame = spark.sql("SELECT if(id = 1, NULL, timestamp_seconds(id)) AS ts FROM range(3)")
    for way in WAYS:
        with pytest.raises(NullTimestamps):
            committed(way, frame, tmp_path / way.__name__)


def test_bytes_that_are_no_text_are_refused_either_way(spark, tmp_path: Path) -> None:
    frame = spark.sql("SELECT timestamp_seconds(id) AS ts, CAST(X'FF' AS string) AS text FROM range(3)")
    said = []
    for way in WAYS:
        with pytest.raises(InvalidText) as error:
            committed(way, frame, tmp_path / way.__name__)
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "column",
    [
        "1 / (id - 1)",
        "CAST(concat('x', id) AS int)",
        "if(id = 1, raise_error('so it is'), id)",
        "validate_utf8(CAST(X'FF' AS string))",
        "regexp_replace(CAST(id AS string), concat('(', id), '')",
        "array(id)[id + 1]",
        "CAST(id AS tinyint) + 127Y",
    ],
)
def test_what_fails_is_said_in_the_same_words(spark, tmp_path: Path, column: str) -> None:
    frame = spark.sql(f"SELECT timestamp_seconds(id) AS ts, {column} AS x FROM range(0, 3, 1, 1)")
    stored = table_of(tmp_path / "t", StructType(frame.schema.fields[:1]))
    errors = []
    for number, way in enumerate(WAYS):
        with pytest.raises(Exception) as error:  # noqa: PT011  (of many types, which are compared)
            way(frame, stored, f"data/{number}")
        errors.append(error.value)
    assert type(errors[0]) is type(errors[1])
    assert sentence(errors[0]) == sentence(errors[1])


def test_a_file_that_is_gone_is_said_in_the_same_words(spark, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text('{"ts": "2026-01-01T00:00:00Z"}', encoding="utf-8")
    frame = spark.read.schema("ts timestamp").json(str(tmp_path / "f.json"))
    stored = table_of(tmp_path / "t", frame.schema)
    (tmp_path / "f.json").unlink()
    errors = []
    for number, way in enumerate(WAYS):
        with pytest.raises(Exception) as error:  # noqa: PT011
            way(frame, stored, f"data/{number}")
        errors.append(sentence(error.value))
    assert errors[0] == errors[1]


def test_what_the_driver_writes_is_as_private_as_the_rest(spark, tmp_path: Path) -> None:
    frame = spark.sql("SELECT timestamp_seconds(id) AS ts FROM range(3)")
    before = os.umask(0o077)
    try:
        stored = committed(write_by_driver, frame, tmp_path / "t")
    finally:
        os.umask(before)
    (file,) = stored.files
    assert (stored.path / file.path).stat().st_mode & 0o777 == 0o600
    assert (stored.path / file.path).parent.stat().st_mode & 0o777 == 0o700


def test_a_driver_that_writes_keeps_job_group_and_pool_and_can_be_cancelled(spark, tmp_path: Path) -> None:
    group, pool = f"group-{uuid4().hex}", f"pool-{uuid4().hex}"
    sleep = "java_method('java.lang.Thread', 'sleep', 1L)"
    slow = spark.sql(f"SELECT timestamp_seconds(id) AS ts, {sleep} AS x FROM range(20000)")
    stored = table_of(tmp_path / "t", StructType(slow.schema.fields[:1]))
    context, failures = spark.sparkContext, []

    def write() -> None:
        context.setJobGroup(group, "a test's", interruptOnCancel=True)  # else it would sleep on
        context.setLocalProperty("spark.scheduler.pool", pool)
        try:
            write_by_driver(slow, stored, "data/1")
        except Exception as error:
            failures.append(error)

    thread = InheritableThread(target=write)
    thread.start()
    try:
        wait_until(lambda: context.statusTracker().getJobIdsForGroup(group))
        wait_until(lambda: context._jsc.sc().getPoolForName(pool).isDefined())
    finally:
        context.cancelAllJobs()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert len(failures) == 1
    assert "cancel" in str(failures[0]).lower()
    assert not stored.files


# -- which way ---------------------------------------------------------------------------------------


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch, spark) -> list[str]:
    """Which way was taken, in turn; nothing is written, and what fails is `failing`."""
    taken: list[str] = []
    for way in WAYS:
        name = way.__name__

        def record(frame: Any, stored: Any, folder: str, outliers: Any, name: str = name) -> SinkResult:
            taken.append(name.removeprefix("write_by_"))
            if folder == f"{taken[-1]} fails" or folder == "both fail":
                raise ArithmeticError
            return SinkResult((), 0, 3 * MEGABYTE)

        monkeypatch.setattr(sinks, name, record)
    return taken


def new_sink(spark) -> tuple[Sink, DataFrame]:
    frame = spark.range(1).selectExpr("timestamp_seconds(id) AS ts")
    return Sink({"t": frame.schema}), frame


def test_what_may_be_large_is_left_to_executors(spark, ways: list[str]) -> None:
    sink, frame = new_sink(spark)
    stored: Any = None  # not used
    for source_bytes in (0, MEGABYTE, MEGABYTE + 1, 40 * MEGABYTE):
        sink.write(frame, "t", stored, "x", source_bytes)
    assert ways == ["driver", "driver", "executors", "executors"]
    # Now three times its sources are known: the next may be six times.
    sink.learn("t", stored, SinkResult((), 0, 3 * MEGABYTE), MEGABYTE, ())
    ways.clear()
    for source_bytes in (5 * MEGABYTE, 6 * MEGABYTE):
        sink.write(frame, "t", stored, "x", source_bytes)
        sink.try_out(frame, "t", stored, "x", source_bytes)
    assert ways == ["driver", "driver", "executors", "executors"]
    # However small results are: never more than the limit of sources.
    for _ in range(8):
        sink.learn("t", stored, SinkResult((), 0, 1), MEGABYTE, ())
    ways.clear()
    for source_bytes in (32 * MEGABYTE, 32 * MEGABYTE + 1):
        sink.write(frame, "t", stored, "x", source_bytes)
    assert ways == ["driver", "executors"]
    # Of a few bytes nothing is learned.
    fresh, _ = new_sink(spark)
    fresh.learn("t", stored, SinkResult((), 0, 0), 100, ())
    fresh.write(frame, "t", stored, "x", 2 * MEGABYTE)
    assert ways[-1] == "executors"


def test_what_executors_wrote_tells_how_large_results_are(spark, tmp_path: Path) -> None:
    frame = spark.sql("SELECT timestamp_seconds(id) AS ts, repeat('x', 92) AS text FROM range(20000)")
    stored = committed(write_by_executors, frame, tmp_path / "t")
    sink = Sink({"t": frame.schema})
    sink.learn("t", stored, SinkResult(), MEGABYTE, stored.files)
    (ratio,) = sink._known["t"].ratios
    exact = frame.toArrow().nbytes / MEGABYTE
    assert ratio == pytest.approx(exact, rel=0.05)


def test_where_one_way_fails_the_next_attempt_takes_the_other(spark, ways: list[str]) -> None:
    sink, frame = new_sink(spark)
    stored: Any = None

    def attempt(folder: str) -> str:
        if "fail" in folder:
            with pytest.raises(ArithmeticError):
                sink.write(frame, "t", stored, folder, 1)
        else:
            sink.write(frame, "t", stored, folder, 1)
        return ways[-1]

    # What fails either way is not the driver's fault: it stays with small results.
    assert [attempt("both fail") for _ in range(4)] == ["driver", "executors"] * 2
    assert [attempt("x") for _ in range(3)] == ["driver"] * 3
    # What fails with the driver alone is left to executors for long, and then tried again.
    assert attempt("driver fails") == "driver"
    sink.try_out(frame, "t", stored, "x", 1)
    assert ways[-1] == "executors"  # what the next attempt would do
    assert [attempt("x") for _ in range(101)] == ["executors"] * 101
    assert attempt("x") == "driver"


def test_who_sets_how_spark_writes_parquet_has_spark_write_it(spark) -> None:
    context = spark.sparkContext
    settings, hadoop = context._jsc.sc().conf(), context._jsc.hadoopConfiguration()
    limit, codec = "spark.freshline.driverWrites", "spark.sql.parquet.compression.codec"
    assert driver_limit(spark) == 32 * MEGABYTE
    try:
        settings.set(limit, "5m")
        assert driver_limit(spark) == 5 * MEGABYTE
        settings.set(codec, "zstd")
        assert driver_limit(spark) == 0
        settings.set(limit, "much")
        with pytest.raises(InputError, match="driverWrites=much is not a size"):
            driver_limit(spark)
        settings.remove(limit)
        settings.remove(codec)
        hadoop.set("parquet.crypto.factory.class", "x")
        assert driver_limit(spark) == 0
    finally:
        settings.remove(limit)
        settings.remove(codec)
        hadoop.unset("parquet.crypto.factory.class")
    assert driver_limit(spark) == 32 * MEGABYTE
