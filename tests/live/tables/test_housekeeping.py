"""Tables are looked after in idle time, and one with which that fails keeps no other from its turn."""

import os
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import LongType, StructField, StructType

from freshline.base.duration import HOUR, MINUTE, SECOND
from freshline.definitions.sections.queries import Query
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.live.queries.query_tables import QueryTables
from freshline.live.tables.housekeeping import Housekeeper, KeptTable, kept_tables
from freshline.planning.plan.make import make_plan
from freshline.spark.answering.merging import MergedAnswer
from freshline.spark.answering.window_reading import ReadingOutcome
from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.ledger import Ledger
from freshline.storage.delta.stored_table import StoredTable
from freshline.testing.builder import Builder

NOW = 1_767_225_600_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC"))])
MANY, FEW = 45, 20  # small files: in need of a compaction, and not


def stored(path: Path, files: int) -> StoredTable:
    """A table with one update of so many small files."""
    table = StoredTable.open_or_create(path, path.name, SCHEMA, "ts")
    folder = path / "data" / "first"
    folder.mkdir(parents=True)
    for number in range(files):
        pq.write_table(pa.table([[number]], SCHEMA), folder / f"part-{number:02d}.parquet")
    table.commit("data/first", files, [], {})
    return table


def idle() -> Kernel:
    """A kernel that waits for files alone."""
    return assemble(make_plan(Builder().files("flows", period=60).build()), NOW, {"flows": None})


class House:
    """Tables, and what was said of their housekeeping."""

    def __init__(self, folder: Path, **files: int) -> None:
        self.tables = {name: stored(folder / name, count) for name, count in files.items()}
        self.ledger = Ledger(folder / "ledger.sqlite")
        self.said: list[tuple[int, str]] = []
        self.books: list[Path] = []
        self.locks = {name: Lock() for name in files}
        self.keeper = Housekeeper(self._kept, self.books, lambda at, text: self.said.append((at, text)))

    def _kept(self) -> dict[str, KeptTable]:
        return kept_tables(self.tables, self.locks, self.ledger)

    def consider(self, after_us: int = 0, kernel: Kernel | None = None) -> dict[str, int]:
        """What it does so long after the beginning, to its end: how many files the tables then have."""
        self.keeper.consider(NOW + after_us, kernel or idle())
        self.keeper.finish(30)
        return {name: len(table.files) for name, table in self.tables.items()}

    def consider_all(self, after_us: int, kernel: Kernel | None = None) -> dict[str, int]:
        """The same for the log, the files and the rest, each of which is a turn of its own."""
        return [self.consider(after_us, kernel) for _ in range(3)][-1]


@pytest.fixture
def house(tmp_path, request) -> Iterator[House]:
    house = House(tmp_path, **request.param)
    yield house
    house.ledger.close()


def of(**files: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("house", [files], indirect=True)


@of(clicks=FEW, flows=MANY)
def test_a_table_in_need_is_compacted_while_nothing_is_to_be_done(house):
    assert house.consider() == {"clicks": FEW, "flows": 1}
    clicks, flows = house.tables.values()
    assert (clicks.version, flows.version) == (1, 2)
    assert flows.files[0].rows == MANY
    assert list((flows.path / "_delta_log").glob("*2.checkpoint.parquet"))
    assert house.consider(SECOND) == {"clicks": FEW, "flows": 1}
    assert flows.version == 2
    assert house.said == []


@of(flows=MANY)
def test_what_would_be_in_the_way_of_a_release_waits(house):
    kernel = assemble(
        make_plan(Builder().continuous("flows", period=60, phase=(NOW + 10 * SECOND) // SECOND % 60).build()),
        NOW,
        {"flows": None},
    )
    assert kernel.wake_at == NOW + 10 * SECOND
    assert house.consider(9 * SECOND, kernel) == {"flows": MANY}  # it may take a second
    assert house.consider(8 * SECOND, kernel) == {"flows": 1}


@of(flows=MANY)
def test_what_would_be_in_the_way_of_a_running_job_waits(house):
    kernel = idle()
    (started,) = kernel.handle(NOW, [FileArrived("flows", DataFile(NOW, "1.csv"))])
    assert house.consider(SECOND, kernel) == {"flows": MANY}
    kernel.handle(NOW + SECOND, [UpdateFinished(started.job, NOW)])
    assert house.consider(2 * SECOND, kernel) == {"flows": 1}


@of(clicks=MANY, flows=MANY)
def test_a_table_with_which_it_fails_is_told_of_once_and_starves_no_other(house):
    file = house.tables["clicks"].path / "data" / "first" / "part-07.parquet"
    sound = file.read_bytes()
    file.write_bytes(b"damaged")
    assert house.consider() == {"clicks": MANY, "flows": MANY}
    ((at, text),) = house.said
    assert at == NOW
    assert text.startswith("clicks: housekeeping failed: ")
    assert house.consider(SECOND) == {"clicks": MANY, "flows": 1}
    assert house.consider(MINUTE) == {"clicks": MANY, "flows": 1}  # tried again, in vain
    assert len(house.said) == 1
    file.write_bytes(sound)
    assert house.consider(3 * MINUTE - 1) == {"clicks": MANY, "flows": 1}  # not yet
    assert house.consider(3 * MINUTE) == {"clicks": 1, "flows": 1}
    assert len(house.said) == 1


@of(clicks=MANY)
def test_another_reason_is_told_too_and_the_table_is_left_alone_for_an_hour_at_most(house):
    file = house.tables["clicks"].path / "data" / "first" / "part-07.parquet"
    sound = file.read_bytes()
    file.write_bytes(b"damaged")
    house.consider()
    file.unlink()
    for minute in (1, 3, 7, 15, 31, 63):
        house.consider_all(minute * MINUTE)
    assert [text.startswith("clicks: housekeeping failed: ") for _, text in house.said] == [True, True]
    assert "part-07.parquet" in house.said[1][1]
    file.write_bytes(sound)
    assert house.consider(63 * MINUTE + HOUR - 1) == {"clicks": MANY}
    assert house.consider_all(63 * MINUTE + HOUR) == {"clicks": 1}


@of(clicks=MANY)
def test_what_crashed_jobs_left_goes_every_hour_even_where_nothing_can_be_merged(house):
    path = house.tables["clicks"].path
    (path / "data" / "first" / "part-07.parquet").write_bytes(b"damaged")
    orphan = path / "data" / "crashed" / "part-0.parquet"
    orphan.parent.mkdir()
    pq.write_table(pa.table([[1]], SCHEMA), orphan)
    os.utime(orphan, (1_000, 1_000))
    house.consider()
    house.consider(30 * MINUTE)
    assert orphan.exists()
    house.consider(HOUR)
    assert not orphan.exists()
    assert len(house.said) == 1


@of(clicks=FEW)
def test_vacuum_waits_for_no_update_and_for_an_idle_track_three_hours_at_most(house):
    orphan = house.tables["clicks"].path / "data" / "crashed" / "part-0.parquet"
    orphan.parent.mkdir()
    pq.write_table(pa.table([[1]], SCHEMA), orphan)
    os.utime(orphan, (1_000, 1_000))
    with house.locks["clicks"]:
        for hours in (0, 1, 2):
            house.consider_all(hours * HOUR, full())
        assert orphan.exists()
        house.consider_all(3 * HOUR, full())
    assert not orphan.exists()
    assert house.said == []


@of(clicks=MANY)
def test_another_writer_is_told_of(house):
    other = StoredTable.open(house.tables["clicks"].path, "ts")
    other.commit(None, MANY + 1, [], {})
    assert house.consider() == {"clicks": MANY}
    ((_, text),) = house.said
    assert "has another writer" in text


def full() -> Kernel:
    """The only track has a job that never ends."""
    kernel = idle()
    kernel.handle(NOW, [FileArrived("flows", DataFile(NOW, "1.csv"))])
    return kernel


def busy() -> Kernel:
    """One of two tracks has a job that never ends."""
    plan = make_plan(Builder(tracks=2).files("flows", period=60).files("clicks", period=60).build())
    kernel = assemble(plan, NOW, {"flows": None, "clicks": None})
    (started,) = kernel.handle(NOW, [FileArrived("flows", DataFile(NOW, "1.csv"))])
    assert started.job.task.name == "flows"
    return kernel


@of(clicks=MANY)
def test_while_a_track_is_busy_only_what_is_urgent_is_done(house):
    assert house.consider(SECOND, busy()) == {"clicks": MANY}
    table = house.tables["clicks"]
    folder = table.path / "data" / "second"
    folder.mkdir()
    for number in range(2 * MANY):
        pq.write_table(pa.table([[MANY + number]], SCHEMA), folder / f"part-{number:02d}.parquet")
    table.commit("data/second", 3 * MANY, [], {})
    assert house.consider(2 * SECOND, busy()) == {"clicks": 1}


def crowded() -> Kernel:
    """The only track has a job that never ends, and another waits."""
    plan = make_plan(Builder().files("flows", period=60).files("clicks", period=60).build())
    kernel = assemble(plan, NOW, {"flows": None, "clicks": None})
    kernel.handle(NOW, [FileArrived(feed, DataFile(NOW, "1.csv")) for feed in ("flows", "clicks")])
    return kernel


@of(clicks=3 * MANY, views=5 * MANY, visits=4 * MANY)
def test_where_jobs_always_wait_the_most_urgent_table_has_its_turn_before_long(house):
    kernel = crowded()
    assert house.consider(SECOND, kernel) == {"clicks": 3 * MANY, "views": 1, "visits": 4 * MANY}
    assert house.consider(2 * SECOND, kernel) == {"clicks": 3 * MANY, "views": 1, "visits": 1}
    assert house.consider(3 * SECOND, kernel) == {"clicks": 3 * MANY, "views": 1, "visits": 1}
    assert house.said == []


@of(flows=1)
def test_what_is_before_the_history_goes_while_the_tracks_are_busy_and_an_update_is_under_way(house):
    table = house.tables["flows"]
    for number in range(2, 103):
        table.commit(None, number, [], {})
    commits = sorted((table.path / "_delta_log").glob("*.json"))
    for path in commits[:60]:
        then_s = time.time() - 2 * table.history_us / SECOND
        os.utime(path, (then_s, then_s))
    house.ledger.catch_up("flows", table)
    with house.locks["flows"]:
        house.consider(SECOND, busy())
        assert len(list((table.path / "_delta_log").glob("*.json"))) == 103
        house.consider(SECOND + MINUTE, busy())
    left = sorted((table.path / "_delta_log").glob("*.json"))
    assert left == commits[50:], "from the checkpoint on that is needed to read version 60"
    assert len(list(table.consumed_since(-1))) == 103
    house.ledger.catch_up("flows", table)
    table.commit(None, 200, [], {})
    assert StoredTable.open(table.path, "ts").freshness == 200


@of(flows=1)
def test_the_books_write_ahead_logs_are_folded_every_minute_while_they_are_in_use(house):
    log = house.ledger.path.with_name("ledger.sqlite-wal")
    house.books.append(house.ledger.path)
    for number in range(100):
        house.ledger.remember("flows", ConsumedFile(f"{number}.csv", 1, 1, "0"))
    grown = log.stat().st_size
    house.consider()
    house.consider(MINUTE - 1)
    house.ledger.remember("flows", ConsumedFile("100.csv", 1, 1, "0"))
    assert log.stat().st_size > grown
    house.consider(MINUTE)
    grown = log.stat().st_size
    house.ledger.remember("flows", ConsumedFile("101.csv", 1, 1, "0"))
    assert log.stat().st_size == grown, "it begins at the front again"
    assert house.ledger.find("flows", "99.csv") is not None
    assert house.said == []


def test_a_table_of_answers_is_compacted_too_once_there_are_some(tmp_path: Path) -> None:
    """One that is opened after the run began, while its query is at rest."""
    query = Query("q", "SELECT count(*) AS n FROM flows", "answers", 1, 1, 1, into="counts")
    schema = StructType([StructField("n", LongType())])
    rewritten = SimpleNamespace(partials=SimpleNamespace(shown=()))
    prepared: Any = SimpleNamespace(query=query, rewritten=rewritten, schema=schema)
    tables = QueryTables(StorageLayout(tmp_path))
    said: list[str] = []
    keeper = Housekeeper(tables.kept, [], lambda at, text: said.append(text))
    keeper.consider(NOW, idle())
    for number in range(MANY):
        outcome = ReadingOutcome(MergedAnswer(({"n": number},), ()), (0, number + 1), Fraction(1), number)
        tables.add(prepared, outcome, cast(Any, SimpleNamespace(release=number, deadline=number + 1)), number)
    (kept,) = tables.kept().values()
    assert (kept.writer, len(kept.table.files)) == ("q", MANY)
    keeper.consider(NOW + SECOND, idle())
    keeper.finish(30)
    assert (said, len(kept.table.files)) == ([], 1)
    rows = DeltaTable(StorageLayout(tmp_path).table("counts")).to_pyarrow_table()
    assert sorted(rows["n"].to_pylist()) == list(range(MANY))
    assert sorted(rows["_rows_seen"].to_pylist()) == list(range(MANY))
    tables.add(prepared, outcome, cast(Any, SimpleNamespace(release=0, deadline=1)), 0)  # goes on after it
    assert DeltaTable(StorageLayout(tmp_path).table("counts")).to_pyarrow_table().num_rows == MANY + 1
