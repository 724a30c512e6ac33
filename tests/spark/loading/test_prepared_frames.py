"""A plan that is used again gives the rows that Spark reads when it is asked anew."""

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from cases import rest_in_soak, sampled
from freshline.definitions.load import loads
from freshline.spark.loading.frames import NONE_LATE, base_rows, is_one_pass, read_files
from freshline.spark.loading.prepared_frames import PreparedFrames, prepared
from freshline.spark.loading.schemas import schemas

SELECTS = [
    "",
    ', select: "SELECT * FROM orders"',
    ', select: "SELECT ts, upper(item) AS item, n * 2 AS n FROM orders"',
    ', select: "SELECT ts, n FROM orders WHERE n > 3"',
]
NESTED = ', select: "SELECT ts, n FROM orders WHERE n > (SELECT avg(n) FROM orders)"'
names = st.text(st.sampled_from("ab1 %[]{}*?:,#'~é+"), min_size=1, max_size=8).map(lambda name: f"f{name}")
files = st.dictionaries(names, st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=4)


def project(select: str, form: str) -> str:
    return f"""\
name: shop
pools: {{updates: {{tracks: 1}}}}
feeds:
  orders: {{path: orders, format: {form}, schema: "ts timestamp, item string, n long", timestamp: ts,
           period: 10s}}
tables:
  orders: {{feed: orders{select}}}
"""


def write(path: Path, form: str, numbers: list[int]) -> None:
    if form == "csv":
        lines = [f"2026-01-01T00:00:0{n}Z,it,{n}" for n in numbers]
        path.write_text("\n".join(["ts,item,n", *lines]), encoding="utf-8")
    elif form == "json":
        lines = [f'{{"ts": "2026-01-01T00:00:0{n}Z", "n": {n}}}' for n in numbers]
        path.write_text("\n".join(lines), encoding="utf-8")
    else:
        ts = pa.array([n * 1_000_000 for n in numbers], pa.timestamp("us", "UTC"))
        item = pa.array(["it"] * len(numbers), pa.string())
        pq.write_table(pa.table({"ts": ts, "item": item, "n": pa.array(numbers, pa.int64())}), path)


class Reader:
    """Reads a feed's files for its table, as updates do."""

    def __init__(self, spark, select: str, form: str) -> None:
        warehouse = loads(project(select, form))
        schemas(spark, warehouse)
        self.spark, self.frames = spark, PreparedFrames()
        self.table, self.feed = warehouse.tables["orders"], warehouse.feeds["orders"]

    def anew(self, paths: list[str]) -> DataFrame:
        records = read_files(self.spark, self.feed, paths)
        return base_rows(self.spark, self.table, self.feed, records, NONE_LATE)

    def again(self, paths: list[str]) -> DataFrame:
        return self.frames.of(self.spark, "orders", paths, lambda: self.anew(paths))


@pytest.mark.parametrize("form", rest_in_soak(["json", "csv", "parquet"], first=1))
@pytest.mark.parametrize("select", SELECTS)
@sampled(4, one_in=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_rows_are_those_that_spark_reads_anew(spark, tmp_path: Path, select, form, data) -> None:
    reader = Reader(spark, select, form)
    assert is_one_pass(reader.table)
    for written in data.draw(st.lists(files, min_size=2, max_size=3)):
        folder = tmp_path / uuid4().hex
        folder.mkdir()
        for name, numbers in written.items():
            write(folder / f"{name}.{form}", form, numbers)
        paths = [str(path) for path in folder.iterdir()]
        again, anew = reader.again(paths), reader.anew(paths)
        assert again.schema == anew.schema
        order = [f.col("ts")]
        assert again.orderBy(*order).collect() == anew.orderBy(*order).collect()


def test_the_plan_is_used_again_and_sees_what_is_in_the_files_then(
    spark, tmp_path: Path, monkeypatch
) -> None:
    reader = Reader(spark, SELECTS[2], "csv")
    path = tmp_path / "a.csv"
    write(path, "csv", [1])
    assert [row.n for row in reader.again([str(path)]).collect()] == [2]
    monkeypatch.setattr(reader, "anew", None)  # not called any more
    write(path, "csv", [3, 4])
    assert [row.n for row in reader.again([str(path)]).collect()] == [6, 8]
    assert reader.again([str(path)]).selectExpr("input_file_name() AS name").first().name.endswith("/a.csv")
    monkeypatch.chdir(tmp_path)
    assert [row.n for row in reader.again(["a.csv"]).collect()] == [6, 8]


def test_a_file_that_is_missing_is_an_error_as_ever(spark, tmp_path: Path) -> None:
    reader = Reader(spark, "", "csv")
    for number in (1, 2):
        write(tmp_path / f"{number}.csv", "csv", [number])
    paths = [str(tmp_path / f"{number}.csv") for number in (1, 2)]
    reader.again(paths)
    (tmp_path / "2.csv").unlink()
    with pytest.raises(AnalysisException):
        reader.again(paths)


def test_what_reads_its_feed_twice_is_not_prepared(spark, tmp_path: Path) -> None:
    reader = Reader(spark, NESTED, "csv")
    assert not is_one_pass(reader.table)
    for number in (1, 2):
        write(tmp_path / f"{number}.csv", "csv", [number])
    one, other = (read_files(spark, reader.feed, [str(tmp_path / f"{number}.csv")]) for number in (1, 2))
    assert prepared(one) is not None
    assert prepared(one.union(other)) is None
    assert prepared(spark.range(3)) is None
