"""An update loads the records that were found in its files, or nothing."""

from pathlib import Path

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from cases import rest_in_soak
from freshline.definitions.load import loads
from freshline.live.tables.file_to_load import FileToLoad
from freshline.spark.loading.frames import ObservedRecords, keeps_records
from freshline.spark.loading.load import FileFacts, Load
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.updater import Updater
from freshline.storage.delta.extent import Extent, OtherRecords
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.stored_table import StoredTable

PROJECT = """\
name: shop
pools: {updates: {tracks: 1}}
feeds:
  orders: {path: orders, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 10s,
           encoding: windows-1252}
tables:
  orders: {feed: orders%s}
"""  # noqa: E501
SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01
KEEPING = [
    "",
    ', select: "SELECT * FROM orders"',
    ', select: "SELECT ts + INTERVAL 1 HOUR AS ts, upper(item) AS item FROM orders"',
    ', select: "SELECT o.ts, o.price FROM orders o"',
]
OTHER = [
    ', select: "SELECT ts, item FROM orders WHERE price > 1"',
    ', select: "SELECT o.ts FROM orders o WHERE o.price > 1"',
    ", select: \"SELECT ts, explode(split(item, ' ')) AS word FROM orders\"",
    ", select: \"SELECT ts, word FROM orders LATERAL VIEW explode(split(item, ' ')) AS word\"",
]


class Shop:
    """A table, and updates of it by hand."""

    def __init__(self, folder: Path, spark, select: str) -> None:
        self.spark = spark
        warehouse = loads(PROJECT % select)
        found = schemas(spark, warehouse)
        arrow = to_arrow_schema(found["orders"], timezone="UTC")
        self.stored = StoredTable.open_or_create(folder / "table", "orders", arrow, "ts")
        self.facts: dict[int, FileFacts] = {}
        landing = {"orders": folder / "orders"}
        self.updater = Updater(warehouse, {"orders": self.stored}, found, landing)
        (folder / "orders").mkdir()
        for number in (1, 2):
            lines = [f"2026-01-01T00:00:0{number}.{tenth}Z,café noir,{tenth}" for tenth in range(3)]
            path = folder / "orders" / f"{number}.csv"
            path.write_text("\n".join(["ts,item,price", *lines]), encoding="windows-1252")
            self.found(number, 3)

    def found(self, number: int, records: int, shifted: int = 0, named: bool = False) -> None:
        """What is said to have been found in a file."""
        oldest = START + number * SECOND + shifted
        times = (None, None) if named else (oldest, START + number * SECOND + 200_000)
        self.facts[number] = FileFacts(ConsumedFile(f"{number}.csv", 1, 1, "x"), records, *times)

    def load(self) -> Load:
        files = tuple(
            FileToLoad(START + number * SECOND, f"{number}.csv", self.facts[number]) for number in (1, 2)
        )
        return Load("orders", 1, 0, START + 3 * SECOND, files)


@pytest.mark.parametrize("select", [*rest_in_soak(KEEPING), *rest_in_soak(OTHER)])
def test_what_was_found_is_loaded_and_anything_else_is_not(spark, tmp_path: Path, select: str) -> None:
    shop = Shop(tmp_path, spark, select)
    for wrong in ({"records": 4}, {"records": 2}, {"records": 3, "shifted": 1}):
        if wrong.get("shifted") and "INTERVAL" in select:
            continue  # the rows' times are others than the records', and every record is a row
        shop.found(1, **wrong)
        with pytest.raises(OtherRecords):
            shop.updater.run(spark, shop.load())
        with pytest.raises(OtherRecords):
            shop.updater.check(spark, shop.load(), tmp_path / "orders")
        assert shop.stored.sequence == 0
    for named in (True, False):
        shop.found(1, 3, named=named)
        shop.updater.check(spark, shop.load(), tmp_path / "orders")
    rows = shop.updater.run(spark, shop.load()).rows
    assert shop.stored.sequence == 1
    assert rows == (2 if "WHERE" in select else 12 if "explode" in select else 6)


@pytest.mark.parametrize("select", [*KEEPING, *OTHER])
def test_whether_every_record_is_a_row_is_known(spark, select: str) -> None:
    warehouse = loads(PROJECT % select)
    table, feed = warehouse.tables["orders"], warehouse.feeds["orders"]
    assert keeps_records(spark, table, feed) == (select in KEEPING)


def test_an_encoding_is_read_as_what_it_is(spark, tmp_path: Path) -> None:
    shop = Shop(tmp_path, spark, "")
    shop.updater.run(spark, shop.load())
    items = spark.read.parquet(*(str(shop.stored.path / file.path) for file in shop.stored.files))
    assert {row.item for row in items.collect()} == {"café noir"}


def test_what_spark_never_tells_is_not_waited_for(spark, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("freshline.spark.loading.frames._TOLD_S", 0.1)
    watched = ObservedRecords(spark.range(3).selectExpr("timestamp_seconds(id) AS ts"), "ts")
    with pytest.raises(TimeoutError):
        watched.extent()  # nothing has read them
    assert watched.records.count() == 3
    monkeypatch.undo()
    assert watched.extent() == Extent(3, 0, 2 * SECOND)
