"""Of each window the records of the highest value stay: the same ones, whatever is loaded together."""

import csv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from cases import sampled
from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.load import loads
from freshline.landing.record_reader import RecordReader
from freshline.live.tables.file_to_load import FileToLoad
from freshline.spark.loading import shedding
from freshline.spark.loading.load import FileFacts, Load
from freshline.spark.loading.load_result import LoadResult
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.updater import Updater
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.log import commit_information
from freshline.storage.delta.stored_table import StoredTable

SECOND = 1_000_000
START = datetime(2026, 1, 1, tzinfo=UTC)
START_US = int(START.timestamp()) * SECOND
PROJECT = """\
name: road
pools: {updates: {tracks: 1}}
feeds:
  cars: {path: cars, format: csv, schema: "ts timestamp, car string, speed int", timestamp: ts, period: 1s,
         shed: {most: 2, per: 1s, value: "%s"}}
tables:
  cars: {feed: cars%s}
"""
Row = tuple[int, str, int | None]  # milliseconds, car, speed


class Road:
    """A table of a feed that sheds, and its updates by hand."""

    def __init__(self, folder: Path, spark, value: str = "speed * 2", select: str = "") -> None:
        self.spark = spark
        self.folder = folder
        (folder / "cars").mkdir(parents=True)
        self.warehouse = loads(PROJECT % (value, select))
        self.schemas = schemas(spark, self.warehouse)
        self.open()

    def open(self) -> None:
        arrow = to_arrow_schema(self.schemas["cars"], timezone="UTC")
        self.stored = StoredTable.open_or_create(self.folder / "table", "cars", arrow, "ts")
        landing = {"cars": self.folder / "cars"}
        self.updater = Updater(self.warehouse, {"cars": self.stored}, self.schemas, landing)

    def file(self, name: str, rows: Iterable[Row]) -> FileToLoad:
        path = self.folder / "cars" / name
        with path.open("w", newline="", encoding="utf-8") as lines:
            out = csv.writer(lines)
            out.writerow(["ts", "car", "speed"])
            for ms, car, speed in rows:
                at = START + timedelta(milliseconds=ms)
                out.writerow([at.isoformat(), car, "" if speed is None else speed])
        found = RecordReader(self.warehouse.feeds["cars"].landing).read(path)
        assert found.newest_us is not None
        facts = FileFacts(ConsumedFile(name, 1, 1, "x"), found.count, found.oldest_us, found.newest_us)
        return FileToLoad(found.newest_us, name, facts)

    def load(self, *files: FileToLoad) -> LoadResult:
        freshness = self.stored.freshness or 0
        ordered = tuple(sorted(files))
        load = Load("cars", 1, freshness, max(freshness, ordered[-1].timestamp), ordered)
        return self.updater.run(self.spark, load)

    def rows(self) -> list[Row]:
        paths = [str(self.stored.path / file.path) for file in self.stored.files]
        found: list[Any] = self.spark.read.parquet(*paths).collect() if paths else []
        return sorted(
            (
                (round((row.ts.astimezone(UTC) - START).total_seconds() * 1_000), row.car, row.speed)
                for row in found
            ),
            key=repr,
        )


def kept(files: Iterable[Sequence[Row]], most: int = 2) -> list[Row]:
    """What is to stay, worked out file by file."""
    windows: dict[int, list[Row]] = {}
    for file in files:
        for start in {row[0] // 1_000 for row in file}:
            there = windows.setdefault(start, [])
            own = [row for row in file if row[0] // 1_000 == start]
            own.sort(key=lambda row: (row[2] is None, -(row[2] or 0), *row[:2]))
            there += own[: most - len(there)]
    return sorted((row for rows in windows.values() for row in rows), key=repr)


FILES = st.lists(
    st.lists(
        st.tuples(
            st.builds(
                int.__add__,
                st.integers(-1, 8).map(lambda second: 1_000 * second),
                st.sampled_from([0, 1, 999]),
            ),
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from([None, 0, 5, 9]),
        ),
        min_size=1,
        max_size=40,
    ),
    min_size=2,
    max_size=4,
)


@sampled(
    4,
    one_in=2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(FILES, st.data())
def test_the_same_rows_stay_whatever_is_loaded_together(spark, tmp_path_factory, files, data) -> None:
    road = Road(tmp_path_factory.mktemp("road"), spark)
    waiting = sorted(road.file(f"{number}.csv", rows) for number, rows in enumerate(files))
    in_order = [files[int(str(file.name).partition(".")[0])] for file in waiting]
    shed = 0
    while waiting:
        count = data.draw(st.integers(1, len(waiting)))
        shed += road.load(*waiting[:count]).rows_shed
        waiting = waiting[count:]
        road.open()  # the next run knows only the table
    assert road.rows() == kept(in_order)
    assert shed == sum(map(len, files)) - len(kept(in_order))


@pytest.mark.parametrize("counted_by_spark", [False, True])
def test_what_is_there_counts_whoever_counts_it(spark, tmp_path: Path, monkeypatch, counted_by_spark) -> None:
    if counted_by_spark:
        monkeypatch.setattr(shedding, "_WINDOWS_COUNTED", -1)
    road = Road(tmp_path, spark)
    first = [(0, "a", 1), (1, "b", 3), (2, "c", 2), (1_000, "d", 1)]
    second = [(3, "e", 9), (1_001, "f", None), (1_002, "g", 0), (2_000, "h", None)]
    late = [(1_500, "i", 99), (2_001, "j", 1)]
    assert road.load(road.file("1.csv", first)).rows_shed == 1
    assert road.load(road.file("2.csv", second)).rows_shed == 2
    committed = road.load(road.file("3.csv", late))
    assert (committed.rows, committed.rows_shed, committed.rows_late) == (1, 1, 0)
    assert road.rows() == kept([first, second, late])
    assert commit_information(road.stored.path, road.stored.version)["rows_shed"] == 1
    # Of a file of which nothing stays the table is as fresh as if it had.
    committed = road.load(road.file("4.csv", [(1_999, "k", 5), (2_002, "l", 7)]))
    assert (committed.rows, committed.rows_shed) == (0, 2)
    assert road.stored.freshness == START_US + 2_002_000


def test_files_of_any_name_are_told_apart(spark, tmp_path: Path) -> None:
    road = Road(tmp_path, spark)
    names = ["a b.csv", "a%20b.csv", "käse [1].csv", "x#y?z.csv", "{a}*.csv", "a:b.csv", "+.csv", "d:[2].csv"]
    files = {name: [(0, name, 10 - number), (number, name, 5)] for number, name in enumerate(names)}
    found = [road.file(name, rows) for name, rows in files.items()]
    road.load(*found)
    assert road.rows() == kept([files[str(file.name)] for file in sorted(found)])


def test_columns_that_have_no_order_go_by_their_texts(spark) -> None:
    warehouse = loads(
        (PROJECT % ("n", ""))
        .replace("format: csv", "format: json")
        .replace("ts timestamp, car string, speed int", "ts timestamp, m map<string, int>, n int, v variant")
    )
    feed = warehouse.feeds["cars"]
    rows = spark.sql(
        "SELECT timestamp_micros(id) AS ts, map('k', CAST(5 - id AS int)) AS m, 1 AS n, "
        "parse_json(CAST(id AS string)) AS v FROM range(5)"
    ).withColumn("ts", shedding.f.timestamp_micros(shedding.f.lit(0)))
    staying = shedding.kept_records(rows, feed).selectExpr("m['k'] AS k").collect()
    assert sorted(row.k for row in staying) == [1, 2]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("car", "the value that it sheds by is string, not a number"),
        ("if(speed > 1, rand(), 0)", "`rand` gives something else each time it is asked"),
        ("CAST(ts < concat('to', 'day') AS int)", "`'today'` gives something else each time it is asked"),
    ],
)
def test_a_value_must_be_a_number_that_lasts(spark, value: str, complaint: str) -> None:
    with pytest.raises((InputError, DefinitionErrors)) as raised:
        schemas(spark, loads(PROJECT % (value, "")))
    assert complaint in str(raised.value)
