"""Every row is in one slice of 256: rows that join are in the same one, and a retry deals as before."""

import random
from collections import Counter
from functools import reduce
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cases import rest_in_soak
from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.definitions.sections.tables import Table
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.sink import write_by_driver, write_by_executors
from freshline.spark.loading.slices import check_slices, dealt, slice_column, slice_together
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.slices import SLICES, Slices
from freshline.storage.delta.sliced_files import GROUP_BYTES
from freshline.storage.delta.stored_table import StoredTable

# Values of each type that may be a key, with neighbours, extremes and what other types have too.
KEYS = {
    "tinyint": ["-128Y", "0Y", "1Y", "127Y"],
    "smallint": ["-128S", "0S", "1S", "32767S"],
    "int": ["-128", "0", "1", "32767", "2147483647"],
    "bigint": ["-128L", "0L", "1L", "2147483647L", "9007199254740993L", "9223372036854775807L"],
    "decimal(5,2)": ["0BD", "1BD", "-128BD", "0.10BD", "1.10BD"],
    "decimal(18,6)": ["1BD", "0.1BD", "0.000001BD", "2147483647BD"],
    "decimal(20,0)": ["1BD", "9007199254740993BD", "9223372036854775807BD", "99999999999999999999BD"],
    "decimal(38,10)": ["1BD", "1.1BD", "9223372036854775807BD", "99999999999999999999BD", "0.0000000001BD"],
    "float": ["0", "1", "0.1", "-0.0", "'NaN'"],
    "double": ["0", "1", "0.1", "-0.0", "'NaN'", "0.10000000149011612D", "9007199254740993"],
    "string": ["''", "'1'", "'a'", "'é'"],
    "binary": ["X''", "X'31'"],
    "boolean": ["true", "false"],
    "date": ["DATE'2026-01-01'", "DATE'1500-01-01'"],
    "timestamp": ["TIMESTAMP'2026-01-01 00:00:00'", "TIMESTAMP'2026-01-01 00:00:00.000001'"],
    "timestamp_ntz": ["TIMESTAMP_NTZ'2026-01-01 00:00:00'"],
}


MOST_TELLING_FIRST = sorted(KEYS, key=lambda kind: kind not in ("int", "decimal(18,6)", "double", "string"))


def table(by: str | None = "k", feed: str | None = "records") -> Table:
    return Table("t", "p", 1, feed=feed, timestamp="ts", slices=Slices(by))


def keyed(spark, kind: str):
    """Rows with the keys of a type, in slices."""
    values = ", ".join(f"(CAST({value} AS {kind}))" for value in KEYS[kind])
    rows = spark.sql(f"SELECT TIMESTAMP'2026-01-01 00:00:00' AS ts, k FROM VALUES {values} AS v(k)")
    check_slices(table(), rows.schema)
    return dealt(rows, slice_column(table(), rows.schema))


@pytest.mark.parametrize("one", rest_in_soak(MOST_TELLING_FIRST, first=4))
def test_keys_that_spark_joins_are_in_the_same_slice_whatever_their_types(spark, one: str) -> None:
    left, pairs = keyed(spark, one), []
    for other in KEYS:
        right = keyed(spark, other)
        if slice_together(left.schema["k"].dataType, right.schema["k"].dataType):
            joined = left.alias("l").join(right.alias("r"), f.expr("l.k = r.k"))
            both = [f.col(f"{side}.{SLICE_COLUMN}") for side in "lr"]
            pairs.append(joined.select(f.lit(other), *both))
    found = reduce(DataFrame.unionAll, pairs).collect()
    assert len(found) >= len(KEYS[one])
    assert [other for other, *slices in found if slices[0] != slices[1]] == []


def test_numbers_of_all_widths_slice_together_and_what_spark_rounds_does_not(spark) -> None:
    def kind(text: str):
        return StructType.fromDDL(f"k {text}")["k"].dataType

    for one, other in [("tinyint", "bigint"), ("int", "decimal(20,2)"), ("decimal(5,2)", "decimal(30,8)")]:
        assert slice_together(kind(one), kind(other))
        assert slice_together(kind(other), kind(one))
    for one, other in [
        ("int", "double"),
        ("int", "string"),
        ("decimal(5,2)", "double"),
        ("bigint", "decimal(38,38)"),
        ("date", "timestamp"),
    ]:
        assert not slice_together(kind(one), kind(other))
        assert not slice_together(kind(other), kind(one))


@pytest.mark.parametrize(
    ("kind", "key"),
    rest_in_soak(
        [("bigint", "(1L << 62) + id"), ("string", "id"), ("int", "id"), ("decimal(9,4)", "id / 10000")],
        first=2,
    ),
)
def test_keys_are_dealt_evenly_and_rows_without_a_key_are_too(spark, kind: str, key: str) -> None:
    rows = spark.range(51_200).selectExpr(
        "timestamp_seconds(0) AS ts", f"if(id % 2 = 0, NULL, CAST({key} AS {kind})) AS k"
    )
    found = dealt(rows, slice_column(table(), rows.schema))
    for condition in ("k IS NULL", "k IS NOT NULL"):
        counts = Counter(row[0] for row in found.where(condition).select(SLICE_COLUMN).collect())
        assert set(counts) == set(range(SLICES))
        # 100 in each: chi-squared with 255 degrees of freedom is below 380 but once in a million.
        assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 380


@pytest.mark.parametrize("feed", ["records", None])
def test_a_retry_deals_the_same_in_whatever_order_spark_works(spark, tmp_path: Path, feed) -> None:
    spark.range(5_000).selectExpr("timestamp_seconds(id % 7) AS ts", "id % 11 AS v").coalesce(
        3
    ).write.parquet(str(tmp_path / "records"))
    chance = table(by=None, feed=feed)
    found = []
    for attempt in range(3):
        rows = spark.read.parquet(str(tmp_path / "records"))
        if feed is None:  # a derived table's rows come out of a shuffle
            rows = rows.repartition(2 + attempt, "v").groupBy("ts", "v").count()
        found.append(Counter(map(tuple, dealt(rows, slice_column(chance, rows.schema)).collect())))
    assert found[0] == found[1] == found[2]
    if feed is not None:
        counts = Counter(row[-1] for row in found[0].elements())
        assert len(counts) == SLICES, "records that are alike are dealt apart"


@pytest.mark.parametrize("write", [write_by_driver, write_by_executors])
def test_files_are_sorted_by_slice_in_row_groups_of_about_4_mib(spark, tmp_path: Path, write) -> None:
    rows = spark.range(0, 200_000, 1, 1).selectExpr(
        "timestamp_seconds(id) AS ts", "sha2(CAST(id AS string), 512) AS text"
    )
    rows = dealt(rows, slice_column(table(by=None), rows.schema))
    stored = StoredTable.open_or_create(
        tmp_path / "t", "t", to_arrow_schema(rows.schema, timezone="UTC"), "ts"
    )
    result = write(rows, stored, "data/1")
    stored.commit("data/1", 200_000, (), {}, written=result.files)
    (file,) = stored.files
    _check_layout(stored.path / file.path, 200_000)


def test_compaction_keeps_order_and_row_groups_and_loses_no_row(spark, tmp_path: Path, monkeypatch) -> None:
    for group_bytes in (64 << 20, 5 << 20):  # in one pass, and in several
        monkeypatch.setattr("freshline.storage.delta.compaction._GROUP_BYTES", group_bytes)
        path = tmp_path / str(group_bytes)
        column, stored = slice_column(table(by=None), StructType.fromDDL("ts timestamp, text string")), None
        for number in range(10):
            rows = spark.range(number * 10_000, (number + 1) * 10_000).selectExpr(
                "timestamp_seconds(id) AS ts", "sha2(CAST(id AS string), 512) AS text"
            )
            rows = dealt(rows, column)
            schema = to_arrow_schema(rows.schema, timezone="UTC")
            stored = stored or StoredTable.open_or_create(path, "t", schema, "ts")
            result = write_by_driver(rows, stored, f"data/{number}")
            stored.commit(f"data/{number}", number, (), {}, written=result.files)
        before = pa.concat_tables(
            [pq.read_table(path / file.path, partitioning=None) for file in stored.files]
        )
        assert stored.compact(64 << 20, 64 << 20) == 10
        (file,) = stored.files
        after = _check_layout(path / file.path, 100_000)
        order = [("ts", "ascending")]
        assert after.sort_by(order).equals(
            before.select(after.column_names).cast(after.schema).sort_by(order)
        )


def _check_layout(path: Path, count: int) -> pa.Table:
    rows = pq.read_table(path, partitioning=None)
    slices = rows[SLICE_COLUMN].to_pylist()
    assert len(slices) == count
    assert all(one <= other for one, other in pairwise(slices))
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    assert len(sizes) > 2
    assert max(sizes) < 1.5 * GROUP_BYTES
    assert sum(sizes) / len(sizes) > GROUP_BYTES / 3
    return rows


PROJECT = """\
name: shop
pools: {updates: {tracks: 1}}
feeds:
  orders: {path: orders, format: csv, schema: "ts timestamp, item string, tags array<string>", timestamp: ts,
           period: 10s}
tables:
  orders: {feed: orders, slices: %s}
  all: {sql: SELECT * FROM orders, period: 10s, slices: {}}
"""


def test_the_column_is_no_table_s_own_but_each_sliced_table_s_last(spark) -> None:
    found = schemas(spark, loads(PROJECT % "{by: ITEM}"))
    assert found["orders"].names == ["ts", "item", "tags", "_late", "_slice"]
    assert found["all"].names == ["ts", "item", "tags", "_slice"]


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("price", "the table has no column `price`"),
        ("tags", "cannot be sliced by tags, which is array<string>"),
    ],
)
def test_a_key_that_is_not_there_or_cannot_be_compared_is_refused(spark, by: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        schemas(spark, loads(PROJECT % f"{{by: {by}}}"))


def test_random_keys_and_tables_of_chance_differ_in_nothing_but_their_slices(spark) -> None:
    rng = random.Random(1)
    values = [(rng.randrange(10), rng.choice(["a", None])) for _ in range(100)]
    rows = spark.createDataFrame(values, "s long, k string").selectExpr("timestamp_seconds(s) AS ts", "k")
    for by in ("k", None):
        found = dealt(rows, slice_column(table(by), rows.schema))
        assert sorted(map(str, found.drop(SLICE_COLUMN).collect())) == sorted(map(str, rows.collect()))
        assert all(0 <= row[0] < SLICES for row in found.select(SLICE_COLUMN).collect())
