"""Files that change little are not loaded; every other row is, once, whatever is loaded together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema

from freshline.definitions.discard import Discard
from freshline.definitions.load import loads
from freshline.landing.key_values import KeyValues, Newest, digest
from freshline.landing.record_reader import RecordReader
from freshline.live.discarding import Discarding
from freshline.spark.file_to_load import FileFacts, FileToLoad
from freshline.spark.updater import Committed, Updater
from freshline.storage.delta import StoredTable
from freshline.storage.files import Consumed
from freshline.storage.last_values import LastValues, Limit, Offer
from freshline.storage.ledger import Ledger
from freshline.tables.intake import FileIntake
from freshline.tables.task import TableTask
from freshline.tables.update import Update

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01
PROJECT = """\
name: plant
pools: {updates: {tracks: 1}}
feeds:
  readings: {path: readings, format: csv, timestamp: ts, period: 1s,
             schema: "ts timestamp, sensor string, v double"}
tables:
  all: {feed: readings}
  few: {feed: readings}
"""
SCHEMA = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("sensor", pa.string()), ("v", pa.float64()), ("_late", pa.bool_())]
)


def values(at: int, **of: float | None) -> KeyValues:
    return KeyValues({digest(key): Newest(at, value) for key, value in of.items()})


def load(known: LastValues, *files: KeyValues) -> None:
    known.committed([Offer(each) for each in files], [False] * len(files))


def changes(stored: KeyValues, found: KeyValues, error: float, factor: float = 1.0) -> bool:
    """Whether a file is loaded."""
    known = LastValues()
    load(known, stored)
    return known.offered(found, Limit(error, factor)).limit is None


@pytest.mark.parametrize(
    ("stored", "found", "error", "factor", "loaded"),
    [
        (100.0, 110.0, 0.1, 1.0, False),  # as much as may be
        (100.0, 110.1, 0.1, 1.0, True),
        (100.0, 90.0, 0.1, 1.0, False),
        (-100.0, -110.0, 0.1, 1.0, False),
        (100.0, -100.0, 1.0, 1.0, True),
        (100.0, 110.0, 0.1, 1.5, True),  # who reads it wants it more precise
        (100.0, 110.0, 0.16, 1.5, False),
        (100.0, 100.0, 0.0, 3.0, False),  # no change is no error
        (0.0, 0.0, 0.0, 1.0, False),
        (0.0, 1e-300, 1.0, 1.0, True),  # no share of nothing
        (0.0, -0.0, 0.0, 1.0, False),
        (1e308, -1e308, 1.0, 1.0, True),
        (None, 1.0, 1.0, 1.0, True),
        (1.0, None, 1.0, 1.0, True),
        (5, 5, 0.0, 1.0, False),
        (2**62, 2**62 + 1, 0.0, 1.0, True),  # exactly
    ],
)
def test_a_file_is_discarded_by_its_weighted_error(stored, found, error, factor, loaded) -> None:
    assert changes(values(1, a=stored), values(2, a=found), error, factor) == loaded


def test_all_keys_must_change_little_and_be_known() -> None:
    stored = values(1, a=1.0, b=1.0)
    assert not changes(stored, values(2, a=1.0, b=1.0), 0.0)
    assert changes(stored, values(2, a=1.0, b=2.0), 0.5)
    assert changes(stored, values(2, a=1.0, c=1.0), 1.0)
    assert changes(stored, KeyValues(values(2, a=1.0).newest, odd=True), 1.0)
    assert changes(stored, KeyValues(), 1.0)
    assert changes(stored, values(0, a=1.0), 1.0)  # older than what is stored: it is not its successor


def test_a_file_is_compared_with_what_will_be_stored_when_its_turn_comes() -> None:
    known = LastValues()
    load(known, values(1, a=50.0))
    offers = [known.offered(values(at, a=v), Limit(0.1, 1.0)) for at, v in ((2, 100.0), (3, 51.0), (4, 52.0))]
    assert [offer.limit is not None for offer in offers] == [False, False, True]
    assert known.discarded(offers) == [False, False, True]
    # The second is put aside, so that 52 would stand for 100.
    assert known.discarded([offers[0], offers[2]]) == [False, False]
    # An older one comes between.
    load(known, values(3, a=51.0), values(4, a=80.0))
    assert known.discarded([offers[2]]) == [False]


def test_what_is_known_is_bounded_and_forgets_the_oldest() -> None:
    known = LastValues(keys_max=2)
    load(known, values(1, a=1.0, b=1.0), values(2, a=1.0), values(3, c=1.0))
    assert len(known) == 2
    assert [known.offered(values(4, **{key: 1.0}), Limit(0.0, 1.0)).limit is None for key in "abc"] == [
        False,
        True,
        False,
    ]
    known.committed([Offer(None, until_us=6)], [False])  # whatever it had
    assert len(known) == 0
    load(known, values(6, a=1.0), values(7, b=1.0))
    assert len(known) == 1  # of one no newer than that nobody knows whether it is the newest
    assert known.discarded([Offer(None), Offer(values(5, a=1.0), Limit(1.0, 1.0))]) == [False, False]


STEPS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from([1.0, 1.05, 2.0]), min_size=1),
        st.integers(0, 12),  # when it was made
        st.sampled_from([0.0, 0.1, 1.0]),  # mwde
        st.sampled_from(["", "", "", "not told", "put aside"]),
    ),
    max_size=25,
)


# What is loaded together and older than what was forgotten is compared with nothing.
@example(
    [({"a": 1.0}, 0, 0.0, ""), ({"a": 1.0, "b": 1.0}, 1, 0.0, ""), *[({"a": 1.0}, 0, 0.0, "")] * 2], 1, 2, 2
)
@settings(max_examples=300)
@given(STEPS, st.integers(1, 3), st.integers(1, 8), st.integers(1, 3))
def test_whatever_is_forgotten_what_is_discarded_was_close_to_what_is_stored(
    steps, keys_max: int, waiting_max: int, together: int
) -> None:
    known = LastValues(keys_max, waiting_max)
    stored: dict[str, tuple[int, float]] = {}
    offers: list[tuple[dict[str, float], int, Offer]] = []
    for number, (of, at, mwde, how) in enumerate(steps, start=1):
        offer = known.offered(None if how == "not told" else values(at, **of), Limit(mwde, 1.0), at)
        if how != "put aside":
            offers.append((of, at, offer))
        if len(offers) < together and number < len(steps):
            continue
        flags = known.discarded([offer for _, _, offer in offers])
        for (loaded, then, offer), is_discarded in zip(offers, flags, strict=True):
            for key, value in loaded.items():
                if is_discarded:
                    assert offer.limit is not None
                    assert stored[key][0] <= then
                    assert abs(stored[key][1] - value) <= offer.limit.error * stored[key][1]
                elif key not in stored or stored[key][0] <= then:
                    stored[key] = (then, value)
        known.committed([offer for _, _, offer in offers], flags)
        offers = []
        assert len(known) <= keys_max


@dataclass(frozen=True)
class File:
    rows: tuple[tuple[int, str, float], ...]  # second, sensor, value
    mwde: float
    again: bool = False  # its rows come once more, under another name


class ByArrow(Updater):
    """Reads files with Arrow where others use Spark; the rest is an update as any other."""

    computed: list[str]

    def _run_base(self, session, job: Update, files: Sequence[FileFacts], consumed) -> Committed:
        stored = self._tables[job.task.name]
        folder = f"data/{stored.sequence:08d}"
        (stored.path / folder).mkdir(parents=True)
        options = pacsv.ConvertOptions(null_values=[])
        paths = [self._landing["readings"] / file.consumed.name for file in files]
        parts = [pacsv.read_csv(path, convert_options=options) for path in paths]
        self.computed += [file.consumed.name for file in files]
        rows = pa.concat_tables(parts).append_column("_late", pa.array([False] * sum(map(len, parts))))
        pq.write_table(rows.cast(SCHEMA), stored.path / folder / "part-0.parquet")
        version = stored.commit(folder, job.loaded_to, consumed, {})
        return Committed(job.loaded_to, len(rows), 0, version, consumed)


class Plant:
    """Two tables of one feed: one has all rows, one does without files that change little."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "readings").mkdir()
        warehouse = loads(PROJECT)
        few = replace(warehouse.tables["few"], discard=Discard("sensor", "v"))
        self.warehouse = replace(warehouse, tables={**warehouse.tables, "few": few})
        self.files: list[FileToLoad] = []
        self.computed: list[str] = []
        self.open()

    def open(self) -> None:
        """A run begins."""
        self.tables = {
            name: StoredTable.open_or_create(self.folder / name, name, SCHEMA, "ts")
            for name in ("all", "few")
        }
        self.discarding = Discarding(self.warehouse)
        self.discarding.recall(self.tables)
        schemas = {name: from_arrow_schema(SCHEMA) for name in self.tables}
        landing = {"readings": self.folder / "readings"}
        self.updater = ByArrow(self.warehouse, self.tables, schemas, landing, self.discarding.last_values)
        self.updater.computed = self.computed

    def find(self, number: int, file: File) -> FileToLoad:
        path = self.folder / "readings" / f"{number}.csv"
        lines = [f"{(START + second * SECOND) // SECOND},{sensor},{v!r}" for second, sensor, v in file.rows]
        stamped = [line.replace(line.split(",")[0], _iso(int(line.split(",")[0])), 1) for line in lines]
        path.write_text("\n".join(["ts,sensor,v", *stamped]) + "\n")
        reader = RecordReader(self.warehouse.feeds["readings"].landing)
        self.discarding.limit("updates", file.mwde)
        columns = self.discarding.columns("readings")
        offers = self.discarding.offers(
            {table: reader.compared(path, *each) for table, each in columns.items()}, 0
        )
        newest = START + max(second for second, _, _ in file.rows) * SECOND
        consumed = Consumed(path.name, 1, 1, path.read_text())
        return FileToLoad(newest, path.name, FileFacts(consumed, len(file.rows), None, None, offers))

    def load(self, table: str, files: Sequence[FileToLoad]) -> Committed:
        task = TableTask(0, table, SECOND, 1, FileIntake())
        freshness = self.tables[table].freshness or 0
        ordered = tuple(sorted(files))
        job = Update(task, 1, 0, 0, 0, 0, freshness, max(freshness, ordered[-1].timestamp), ordered)
        return self.updater.run(None, job)  # type: ignore[arg-type]

    def rows(self, table: str) -> list[tuple[int, str, float]]:
        stored = self.tables[table]
        parts = [pq.read_table(stored.path / file.path) for file in stored.files]
        found = [row for part in parts for row in part.to_pylist()]
        return sorted(
            (round(row["ts"].timestamp()) - START // SECOND, row["sensor"], row["v"]) for row in found
        )


def _iso(second: int) -> str:
    return pa.scalar(second, pa.timestamp("s", "UTC")).as_py().strftime("%Y-%m-%dT%H:%M:%SZ")


FILES = st.lists(
    st.builds(
        File,
        st.lists(
            st.tuples(
                st.integers(0, 30),
                st.sampled_from(["a", "b"]),
                st.sampled_from([0.0, 1.0, 1.05, 1.1, 2.0, -1.0, float("nan")]),
            ),
            min_size=1,
            max_size=3,
        ).map(tuple),
        st.sampled_from([0.0, 0.05, 0.1, 1.0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(FILES, st.data())
def test_no_other_table_loses_a_row_and_no_key_is_further_off_than_allowed(
    tmp_path_factory, files: list[File], data
) -> None:
    plant = Plant(tmp_path_factory.mktemp("plant"))
    coming = [each for file in files for each in ([file, file] if file.again else [file])]
    waiting: list[tuple[File, FileToLoad]] = []
    newest: dict[str, tuple[int, float]] = {}  # what a reader of every file would know
    allowed: dict[str, float] = {}
    left_out: set[str] = set()
    for number, file in enumerate(coming):
        waiting.append((file, plant.find(number, file)))
        if number + 1 < len(coming) and data.draw(st.booleans()):
            continue
        plant.load("all", [found for _, found in waiting])
        committed = plant.load("few", [found for _, found in waiting])
        left_out |= {each.name for each in committed.consumed if each.discarded}
        assert committed.freshness == plant.tables["few"].freshness
        assert committed.computed == (committed.discarded < len(waiting))
        for each, found in sorted(waiting, key=lambda pair: pair[1]):
            for second, sensor, v in sorted(each.rows, key=lambda row: row[0]):
                if sensor not in newest or newest[sensor][0] <= second:
                    newest[sensor] = (second, v)
                    was_left = found.name in left_out
                    allowed[sensor] = max(allowed.get(sensor, 0.0), each.mwde) if was_left else 0.0
        waiting = []
        if data.draw(st.booleans()):
            plant.open()  # the runner was killed
    every = sorted(row for file in coming for row in file.rows)
    assert _comparable(plant.rows("all")) == _comparable(every)
    kept = [file for number, file in enumerate(coming) if f"{number}.csv" not in left_out]
    assert _comparable(plant.rows("few")) == _comparable(sorted(row for file in kept for row in file.rows))
    for sensor, (_, v) in newest.items():
        of_sensor = [row for row in plant.rows("few") if row[1] == sensor]
        last = [row[2] for row in of_sensor if row[0] == max(second for second, _, _ in of_sensor)]
        if allowed[sensor] and len(last) == 1:
            assert abs(last[0] - v) <= allowed[sensor] * abs(last[0])


def _comparable(rows: Sequence[tuple[int, str, float]]) -> list[str]:
    return sorted(map(repr, rows))


def test_a_discarded_file_is_known_as_consumed_whatever_becomes_of_the_ledger(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0),), 0.0))])
    committed = plant.load("few", [plant.find(2, File(((2, "a", 10.5),), 0.1))])
    assert (committed.rows, committed.discarded, committed.computed) == (0, 1, False)
    assert plant.tables["few"].freshness == START + 2 * SECOND
    mixed = [plant.find(3, File(((3, "a", 10.6),), 0.1)), plant.find(4, File(((4, "a", 20.0),), 0.1))]
    committed = plant.load("few", mixed)
    assert (committed.rows, committed.discarded, committed.computed) == (1, 1, True)
    assert plant.computed == ["1.csv", "4.csv"]
    for name in ("one.sqlite", "made-anew.sqlite"):
        ledger = Ledger(tmp_path / name)
        ledger.catch_up("few", plant.tables["few"])
        found = {number: ledger.find("few", f"{number}.csv") for number in (1, 2, 3, 4)}
        assert {number: each and each.discarded for number, each in found.items()} == {
            1: False,
            2: True,
            3: True,
            4: False,
        }
        ledger.close()


def test_values_are_found_again_as_far_as_they_are_certain(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0), (2, "b", 5.0), (9, "c", 1.0)), 0.0))])
    plant.load("few", [plant.find(2, File(((10, "a", 11.0), (10, "b", 7.0), (10, "b", 8.0)), 0.0))])
    stored = plant.tables["few"]
    columns = plant.discarding._columns["few"]
    for rows_max, known in ((100, {"a": 11.0, "b": None, "c": 1.0}), (4, {"a": 11.0, "b": None})):
        values = LastValues()
        values.recall(stored, *columns, rows_max=rows_max)
        found = {key: values._stored.get(digest(key)) for key in "abc"}
        assert {key: each.value for key, each in found.items() if each} == known


def test_a_table_weighs_errors_as_those_who_read_it_do(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0),), 0.0))])
    plant.discarding.limit("updates", 0.1)
    found = {"few": values(START + 2 * SECOND, a=11.0)}
    plant.discarding.read("few", 1.5, 0)
    plant.discarding.read("all", 9.0, 0)  # it has no `discard`
    assert plant.discarding.offers(found, 0)["few"].limit is None
    plant.open()
    plant.discarding.limit("updates", 0.1)
    plant.discarding.read("few", 1.5, 0)
    assert plant.discarding.offers(found, 5 * SECOND)["few"].limit == Limit(0.1, 1.0)


def test_a_ledger_of_an_older_version_is_taken_over(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "ledger.sqlite") as old:
        old.executescript(
            "CREATE TABLE consumed (table_name TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL, "
            "mtime_ns INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (table_name, name)) WITHOUT ROWID;"
            "INSERT INTO consumed VALUES ('few', '1.csv', 1, 2, 'x');"
        )
    old.close()
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.find("few", "1.csv") == Consumed("1.csv", 1, 2, "x")
    ledger.remember("few", Consumed("2.csv", 1, 2, "y", discarded=True))
    assert ledger.find("few", "2.csv") == Consumed("2.csv", 1, 2, "y", discarded=True)
    ledger.close()
