"""Costs that are measured on existing files, on a real Spark."""

import time

import pytest

from cases import rest_in_soak
from drained_shop import PROJECT, Shop, long_periods
from freshline.definitions.load import load
from freshline.live.maintain.calibrate import calibrate
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout
from patience import PATIENCE_S


def test_a_calibration_leaves_every_file_where_it_is_and_learns_from_the_good_ones(tmp_path, spark):
    text = PROJECT.replace("timestamp: ts, period", "timestamp: ts, after_load: delete, period")
    shop = Shop(tmp_path, spark, text.replace("orders, cost: {startup: 5s}", "orders"))
    for number in range(1, 4):
        shop.orders(f"{number}.csv", [(number, "tea", number)])
    landing = shop.folder / "landing/orders"
    (landing / "4.csv").write_text(f"ts,item,price\n{shop.at(4).isoformat()},tea,many\n", encoding="utf-8")
    (landing / "5.csv").write_bytes(b"")
    shop.orders("6.csv", [])
    (landing / "7.csv").write_bytes(b"\x00\xff no timestamps here\n\x00")
    (shop.folder / "landing/clicks/1.json").write_text("{no data", encoding="utf-8")
    before = {path: path.read_bytes() for path in (shop.folder / "landing").rglob("*.*")}
    assert len(before) == 8
    measured = calibrate(load(shop.file), shop.folder, shop.storage, files_max=12, session=spark)
    assert {path: path.read_bytes() for path in (shop.folder / "landing").rglob("*.*")} == before
    assert (measured.jobs["orders"], measured.jobs["clicks"]) == (3, 0)
    assert sorted(entry.stored for entry in measured.left) == [
        "clicks/1.json",
        "orders/4.csv",
        "orders/7.csv",
    ]
    with History(StorageLayout(shop.storage).control().history, read_only=True) as history:
        assert [run.rows for run in history.runs("orders")] == [1, 1, 1]
    assert not list((shop.storage / "_freshline" / "scratch").iterdir())


def test_calibrating_beside_busy_tracks_records_how_many_were_busy(tmp_path, spark, monkeypatch) -> None:
    monkeypatch.setattr("freshline.spark.session.busy_tracks._NUMBERS", 200_000)  # short jobs do as well
    shop = long_periods(tmp_path, spark, "edf")
    calibrate(load(shop.file), shop.folder, shop.storage, files_max=12, session=spark, loaded=True)
    with History(StorageLayout(shop.storage).control().history, read_only=True) as history:
        runs = history.runs("orders")
    assert {run.busy for run in runs} == {2}  # its own track, and the pool's other one
    assert all(1 <= run.tasks <= spark.sparkContext.defaultParallelism for run in runs)


@pytest.mark.parametrize("policy", rest_in_soak(["aus", "edf-strict"]))
def test_a_calibration_waits_for_no_period_and_measures_derived_tables_too(tmp_path, spark, policy):
    shop = long_periods(tmp_path, spark, policy)
    started = time.monotonic()
    measured = calibrate(load(shop.file), shop.folder, shop.storage, files_max=12, session=spark)
    assert time.monotonic() - started < PATIENCE_S
    assert measured.jobs["orders"] == 5
    assert min(measured.jobs.values()) >= 3
    assert measured.lost_because is None
