"""A file that Spark cannot load holds nothing up: it is put aside, or skipped, and only if it is to blame."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from cases import rest_in_soak
from freshline.base.errors import InputError
from freshline.live.status.status import WarehouseStatus
from freshline.spark.loading.updater import Updater
from freshline.storage.control.quarantine import Quarantine
from place import PROJECT, START, Place

PARQUET = """\
name: bytes
pools: {updates: {tracks: 2}}
feeds:
  orders: {path: landing/orders, format: parquet, schema: "ts timestamp, n KIND", timestamp: ts, period: 1s}
tables:
  orders: {feed: orders, cost: {startup: 5s}}
"""
TOGETHER = PROJECT.replace("{tracks: 2}", "{tracks: 2, policy: prp}")


@pytest.fixture
def place(tmp_path, spark) -> Place:
    place = Place(tmp_path, spark)
    for number in (1, 2, 3):
        place.land("orders", number)
        place.land("clicks", number)
    return place


def with_select(select: str) -> str:
    return PROJECT.replace("orders: {feed: orders,", f'orders: {{feed: orders, select: "{select}",')


def noted(place: Place, words: str) -> bool:
    return any(words in note for status in place.said for note in status.broken_assumptions)


def land_parquet(place: Place, name: str, values: pa.Array, second: int = 1, **options: object) -> Path:
    path = place.folder / "landing" / "orders" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    instants = pa.array([START + timedelta(seconds=second)] * len(values), pa.timestamp("us", "UTC"))
    hidden = path.with_name(".hidden")
    pq.write_table(pa.table({"ts": instants, "n": values}), hidden, **options)
    return hidden.replace(path)


def no_text(*values: bytes) -> pa.Array:
    return pa.array(values, pa.binary()).view(pa.string())


BAD_VALUES: dict[str, tuple[str, pa.Array, pa.Array, str]] = {
    "UINT64 for a long": (
        "long",
        pa.array([1, 2], pa.int64()),
        pa.array([1, 2], pa.uint64()),
        "its column `n` is UINT64, which does not fit the declared type",
    ),
    "bytes in the middle": (
        "string",
        pa.array(["a", "b"]),
        no_text(b"a", b"b\xff", b"c"),
        "found in string: \\x62\\xFF in column n",
    ),
    "UINT64 in a struct": (
        "struct<a: long>",
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([{"a": 1}, {"a": 2}], pa.struct([("a", pa.uint64())])),
        "UnsupportedOperationException",
    ),
    "a text for a long": ("long", pa.array([1, 2]), pa.array(["1", "2"]), "Parquet column [n]"),
    "bytes that are the least": (
        "string",
        pa.array(["a", "b"]),
        no_text(b"\xff", b"a"),
        "[INVALID_UTF8_STRING] Invalid UTF8 byte sequence found in string: \\xFF in column n",
    ),
    "bytes in a list": (
        "array<string>",
        pa.array([["a"], None, [None]]),
        pa.ListArray.from_arrays([0, 2, 3], no_text(b"a", b"b\xff", b"c")),
        "column n has bytes that are not text",
    ),
}


@pytest.mark.parametrize("kind", rest_in_soak(BAD_VALUES, first=2))
def test_a_parquet_file_of_values_that_are_not_as_declared_is_put_aside(tmp_path, spark, kind):
    declared, good, bad, reason = BAD_VALUES[kind]
    place = Place(tmp_path, spark)
    place.project = PARQUET.replace("KIND", declared)
    land_parquet(place, "1.parquet", good, second=1)
    land_parquet(place, "2.parquet", bad, second=2)
    land_parquet(place, "3.parquet", good, second=3)
    place.run()
    found = DeltaTable(place.folder / "warehouse" / "tables" / "orders").to_pyarrow_table(columns=["n"])
    assert sorted(map(str, found["n"].to_pylist())) == sorted(map(str, 2 * good.to_pylist()))
    (entry,) = place.quarantine()
    assert entry.name == "2.parquet"
    assert reason in entry.reason
    assert not list((place.folder / "warehouse" / "tables" / "orders").glob("data/check-*"))
    assert not list((place.folder / "warehouse" / "_freshline").glob("trial-*"))


def test_a_parquet_file_with_damaged_pages_is_put_aside(tmp_path, spark):
    place = Place(tmp_path, spark)
    place.project = PARQUET.replace("KIND", "long")
    good = pa.array(range(1_000))
    land_parquet(place, "1.parquet", good, second=1)
    path = land_parquet(place, "2.parquet", good, second=2, compression="snappy", use_dictionary=False)
    column = pq.read_metadata(path).row_group(0).column(1)
    damaged = bytearray(path.read_bytes())
    middle = column.data_page_offset + column.total_compressed_size // 2
    damaged[middle : middle + 200] = bytes(200)
    path.write_bytes(damaged)
    land_parquet(place, "3.parquet", good, second=3)
    place.run()
    assert [entry.name for entry in place.quarantine()] == ["2.parquet"]
    assert len(place.numbers("orders")) == 2_000


def test_where_the_definition_fails_on_everything_no_file_is_put_aside(place):
    place.project = with_select("SELECT ts, 12 div (n - n) AS n FROM orders")

    def in_the_fourth_attempt(status: WarehouseStatus) -> bool:
        return any("orders: attempt 4 failed" in note for note in status.broken_assumptions)

    place.run(until=in_the_fourth_attempt)
    assert place.quarantine() == []
    assert sorted(path.name for path in (place.folder / "landing" / "orders").iterdir()) == [
        "1.json",
        "2.json",
        "3.json",
    ]
    orders = place.said[-1].tables[0]
    assert orders.state == "FAILED"
    assert orders.message.startswith("[DIVIDE_BY_ZERO]")
    assert orders.message.endswith("made-up rows fail too, so no file goes to quarantine")
    assert len(orders.message) <= 300


@pytest.mark.parametrize("order", rest_in_soak([["bad", 1, 2], [1, 2, 3, "bad"], [1, "bad", 2, 3]]))
def test_where_made_up_rows_cannot_be_computed_other_files_show_that_one_is_bad(tmp_path, spark, order):
    place = Place(tmp_path, spark)
    # Made-up texts are no numbers, so only real files can show that the definition works.
    place.project = with_select("SELECT ts, cast(n AS long) AS n FROM orders").replace(
        "n long", "n string", 1
    )
    for number, kind in enumerate(order, 1):
        place.land_bad("orders", number) if kind == "bad" else place.land("orders", number)
    bad = order.index("bad") + 1
    place.run()
    assert place.numbers("orders") == [number for number in range(1, len(order) + 1) if number != bad]
    (entry,) = place.quarantine()
    assert entry.name == f"{bad}.json"
    assert entry.reason.startswith("[CAST_INVALID_INPUT] The value 'many'")


def test_a_file_of_the_longest_name_is_put_aside_and_taken_back(place):
    long_name = "n" * 250 + ".json"
    place.land_bad("orders", 4)
    landing = place.folder / "landing" / "orders"
    (landing / "4.json").replace(landing / long_name)
    unreadable = "u" * 250 + ".json"
    (landing / unreadable).write_text("{no data", encoding="utf-8")
    place.land("orders", 5)
    place.run()
    assert place.numbers("orders") == [1, 2, 3, 5]
    entries = place.quarantine()
    assert [entry.name for entry in entries] == [long_name, unreadable]
    quarantine = Quarantine(place.folder / "warehouse" / "_freshline" / "quarantine")
    for entry in entries:
        quarantine.retry(entry, landing)
        (landing / entry.name).write_text('{"ts": "2026-01-01T00:00:09Z", "n": 9}\n', encoding="utf-8")
    place.run()
    assert place.numbers("orders") == [1, 2, 3, 5, 9, 9]
    assert place.quarantine() == []


@pytest.mark.parametrize("found_by", rest_in_soak(["discovery", "Spark"]))
def test_a_file_that_cannot_be_put_aside_is_skipped_and_put_aside_once_it_can_be(place, found_by):
    if found_by == "Spark":
        place.land_bad("orders", 4)
    else:
        (place.folder / "landing" / "orders" / "4.json").write_text("{no data", encoding="utf-8")
    place.land("orders", 5)
    obstacle = place.folder / "warehouse" / "_freshline" / "quarantine" / "files" / "orders"
    obstacle.parent.mkdir(parents=True)
    obstacle.write_text("in the way", encoding="utf-8")
    place.run()  # to its end, for what is left can wait
    assert place.numbers("orders") == place.numbers("sums") == [1, 2, 3, 5]
    assert noted(place, "orders: 4.json is skipped: it cannot be put into quarantine")
    assert (place.folder / "landing" / "orders" / "4.json").is_file()
    assert place.states("orders") - {"FAILED"}
    place.land("orders", 6)

    def put_aside(status: WarehouseStatus) -> bool:
        if noted(place, "orders: 4.json is skipped") and obstacle.is_file():
            obstacle.unlink()
        return bool(place.quarantine()) and len(place.numbers("sums")) == 5

    place.run(until=put_aside)
    assert place.numbers("orders") == [1, 2, 3, 5, 6]
    (entry,) = place.quarantine()
    assert entry.name == "4.json"
    assert "is skipped" not in entry.reason


def test_a_skipped_file_that_is_corrected_is_loaded(place):
    place.land_bad("orders", 4)
    obstacle = place.folder / "warehouse" / "_freshline" / "quarantine" / "files" / "orders"
    obstacle.parent.mkdir(parents=True)
    obstacle.write_text("in the way", encoding="utf-8")
    corrected: list[Path] = []

    def loaded(status: WarehouseStatus) -> bool:
        if not corrected and noted(place, "orders: 4.json is skipped"):
            corrected.append(place.land("orders", 4))
        return place.numbers("orders") == [1, 2, 3, 4]

    place.run(until=loaded)
    assert len(corrected) == 1
    obstacle.unlink()
    place.run()
    assert place.quarantine() == []
    assert place.numbers("orders") == [1, 2, 3, 4]


def at_first_run(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object]) -> None:
    """Does something to a file when its table's update begins."""
    run, done = Updater.run, []

    def acting(self, session, load):
        if not done and load.table == "orders" and name in [file.name for file in load.files]:
            done.append(act())
        return run(self, session, load)

    monkeypatch.setattr(Updater, "run", acting)


@pytest.mark.parametrize("project", rest_in_soak([PROJECT, TOGETHER]))
def test_a_file_that_has_vanished_is_not_bad_and_is_loaded_when_it_comes_back(place, monkeypatch, project):
    place.project = project
    path = place.folder / "landing" / "orders" / "2.json"
    at_first_run(monkeypatch, "2.json", lambda: path.rename(place.folder / "2.json"))
    place.run()
    assert place.numbers("orders") == [1, 3]
    assert place.quarantine() == []
    (place.folder / "2.json").rename(path)
    place.run()
    assert place.numbers("orders") == [1, 2, 3]


def test_of_two_files_one_vanishes_and_the_other_is_loaded(place, monkeypatch):
    place.project = TOGETHER
    place.run()
    for number in (4, 5):
        place.land("orders", number)
    path = place.folder / "landing" / "orders" / "4.json"
    at_first_run(monkeypatch, "4.json", lambda: path.rename(place.folder / "4.json"))
    place.run()
    assert place.numbers("orders") == [1, 2, 3, 5]
    assert place.quarantine() == []


@pytest.mark.parametrize("project", rest_in_soak([PROJECT, TOGETHER]))
def test_a_file_that_cannot_be_read_is_skipped_until_it_can_be(place, monkeypatch, project):
    place.project = project
    path = place.folder / "landing" / "orders" / "2.json"
    content = path.read_bytes()

    def out_of_reach() -> None:
        path.unlink()
        path.symlink_to(path)  # opening it always fails

    at_first_run(monkeypatch, "2.json", out_of_reach)

    def readable_again(status: WarehouseStatus) -> bool:
        if path.is_symlink() and place.numbers("orders") == [1, 3]:
            path.unlink()
            (place.folder / "2.json").write_bytes(content)
            (place.folder / "2.json").rename(path)
        return place.numbers("orders") == [1, 2, 3]

    place.run(until=readable_again)
    assert place.quarantine() == []


@pytest.mark.parametrize("then_fails", rest_in_soak([None, "2.json"]))
def test_files_that_fail_only_together_are_loaded_one_by_one(place, monkeypatch, then_fails):
    place.project = TOGETHER
    run, alone = Updater.run, []

    def failing(self, session, load):
        if load.table == "orders":
            names = [str(file.name) for file in load.files]
            if len(names) > 1:
                raise MemoryError("too much at once")
            alone.append(names[0])
            if names == [then_fails] and alone.count(then_fails) == 1:
                raise OSError("not now")
        return run(self, session, load)

    monkeypatch.setattr(Updater, "run", failing)
    place.run()
    assert place.numbers("orders") == place.numbers("sums") == [1, 2, 3]
    assert place.quarantine() == []
    if then_fails is None:
        assert alone == ["1.json", "2.json", "3.json"]
        table = DeltaTable(place.folder / "warehouse" / "tables" / "orders").to_pyarrow_table()
        assert table["_late"].to_pylist() == [False] * 3


def test_a_file_that_passes_by_itself_is_not_blamed_for_what_fails_around_it(place, monkeypatch):
    def unreachable(self, session, load):
        raise OSError("the cluster cannot see the landing directory")

    monkeypatch.setattr(Updater, "run", unreachable)

    def in_the_fourth_attempt(status: WarehouseStatus) -> bool:
        return any("orders: attempt 4 failed" in note for note in status.broken_assumptions)

    place.run(until=in_the_fourth_attempt)
    assert place.quarantine() == []
    assert place.said[-1].tables[0].message == "the cluster cannot see the landing directory"


def test_a_derived_table_that_fails_on_a_row_says_so_and_stays_failed(place):
    place.project = PROJECT.replace("sum(n) AS n", "sum(12 div (n - 2)) AS n")

    def in_the_fourth_attempt(status: WarehouseStatus) -> bool:
        return any("sums: attempt 4 failed" in note for note in status.broken_assumptions)

    place.run(until=in_the_fourth_attempt)
    sums = place.said[-1].tables[2]
    assert (sums.state, sums.message) == (
        "FAILED",
        "[DIVIDE_BY_ZERO] Division by zero.",
    ) or sums.message.startswith("[DIVIDE_BY_ZERO]")
    assert place.numbers("orders") == [1, 2, 3]
    assert place.quarantine() == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, and of few bytes."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this process may not mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(filler: Path) -> None:
    """Leaves no byte free."""
    with filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_a_full_disk_is_called_that_and_costs_no_file(place, small_disk):
    messages: set[str] = set()
    filler = small_disk / ".filler"

    def full_and_freed(status: WarehouseStatus) -> bool:
        loaded = place.numbers("orders")
        if loaded == [1, 2, 3] and not messages and not filler.exists():
            fill(filler)
            for number in (4, 5):
                place.land("orders", number)
        if status.tables[0].message:
            messages.add(status.tables[0].message)
        if filler.exists() and noted(place, "orders: attempt 4 failed"):
            filler.unlink()
        return place.numbers("sums") == [1, 2, 3, 4, 5]

    place.run(until=full_and_freed)
    assert place.numbers("orders") == [1, 2, 3, 4, 5]
    assert place.quarantine() == []
    assert messages
    assert {message.partition(";")[0] for message in messages} == {f"the disk is full ({small_disk})"}


def test_a_storage_on_a_full_disk_is_refused_by_that_name(place, small_disk):
    fill(small_disk / ".filler")
    with pytest.raises(InputError, match="cannot be written: the disk is full"):
        place.run()
