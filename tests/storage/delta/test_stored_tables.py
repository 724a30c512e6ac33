"""A table's way through its updates."""

import json
import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from freshline.base.errors import InputError
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.statistics import UnreadableParquet
from freshline.storage.delta.stored_table import NullTimestamps, StoredTable
from stored_tables import SCHEMA, file, instants, job, opened, rows, update


def test_a_new_table_is_empty_and_has_no_freshness(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    assert (table.version, table.sequence, table.freshness, table.files) == (0, 0, None, ())
    assert table.schema == SCHEMA
    assert DeltaTable(tmp_path / "t").metadata().name == "flows"


def test_an_update_adds_its_files_and_moves_freshness_in_one_commit(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    folder = job(table, "000001-ab", [5, 3, 9], [10])
    assert table.commit(folder, 8, [file("a.csv")], {"job": 7, "release": 3}) == 1
    first, second = (tmp_path / "t" / folder / f"part-{n}.parquet" for n in (0, 1))
    assert table.files == (
        LiveFile("data/000001-ab/part-0.parquet", 3, first.stat().st_size, 3, 9),
        LiveFile("data/000001-ab/part-1.parquet", 1, second.stat().st_size, 10, 10),
    )
    assert (table.version, table.sequence, table.freshness) == (1, 1, 8)
    lines = (tmp_path / "t/_delta_log/00000000000000000001.json").read_text().splitlines()
    actions = [json.loads(line) for line in lines]
    ours = actions[0]["commitInfo"]["freshline"]
    del ours["id"]
    assert ours == {
        "job": 7,
        "release": 3,
        "files": [
            {
                "name": "a.csv",
                "size": 10,
                "mtime_ns": 1_700_000_000_000_000_001,
                "digest": "digest of a.csv",
            }
        ],
    }
    assert [action["txn"] for action in actions if "txn" in action] == [
        {"appId": "freshline", "version": 1},
        {"appId": "freshline.freshness", "version": 8},
    ]


def test_a_table_opened_again_is_the_one_that_was_kept_in_memory(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 70):  # past checkpoints and the log's clean-up
        update(table, number)
        if number % 20 == 0:
            table.compact(1 << 20, 1 << 20)
    again = StoredTable.open(tmp_path / "t", "ts")
    assert (again.version, again.sequence, again.freshness) == (table.version, 69, 69)
    assert set(again.files) == set(table.files)
    assert len(again.files) == len(table.files) == 10
    assert again.id == table.id
    assert instants(tmp_path / "t") == list(range(1, 70))


@pytest.mark.parametrize("parts", [None, [], [[]]], ids=["no folder", "an empty one", "a file without rows"])
def test_an_update_without_rows_moves_freshness_only(tmp_path: Path, parts: list[list[int]] | None) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    before = table.files
    folder = None if parts is None else job(table, "x", *parts)
    table.commit(folder, 20, [], {})
    assert (table.sequence, table.freshness, table.files) == (2, 20, before)
    again = StoredTable.open(tmp_path / "t", "ts")
    assert (again.sequence, again.freshness, again.files) == (2, 20, before)


def test_a_jobs_hidden_files_are_not_added(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    folder = job(table, "x", [1])
    pq.write_table(rows([2]), tmp_path / "t" / folder / "_hidden.parquet")
    pq.write_table(rows([2]), tmp_path / "t" / folder / ".hidden.parquet")
    (tmp_path / "t" / folder / "_SUCCESS").touch()
    table.commit(folder, 1, [], {})
    assert instants(tmp_path / "t") == [1]


def test_freshness_does_not_go_back(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    update(table, 10)
    with pytest.raises(ValueError, match="would go back: 10 to 9"):
        table.commit(None, 9, [], {})
    table.commit(None, 10, [], {})
    assert (table.sequence, table.freshness) == (2, 10)


def test_rows_without_a_timestamp_are_refused_and_nothing_is_committed(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    with pytest.raises(NullTimestamps, match="3 rows have no timestamp") as caught:
        table.commit(job(table, "x", [1, None], [None, None]), 1, [], {})
    assert caught.value.count == 3
    assert (table.version, table.files) == (0, ())
    assert DeltaTable(tmp_path / "t").version() == 0


def test_missing_and_damaged_files_are_refused(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    with pytest.raises(UnreadableParquet, match="is missing"):
        table.commit("data/nowhere", 1, [], {})
    folder = job(table, "x", [1])
    (tmp_path / "t" / folder / "part-1.parquet").touch()
    with pytest.raises(UnreadableParquet, match=r"part-1\.parquet cannot be read"):
        table.commit(folder, 1, [], {})
    pq.write_table(pa.table({"n": [1]}), tmp_path / "t" / folder / "part-1.parquet")
    with pytest.raises(UnreadableParquet, match="has no column 'ts'"):
        table.commit(folder, 1, [], {})
    with pytest.raises(InputError, match="leads out of"):
        table.commit("../elsewhere", 1, [], {})
    assert DeltaTable(tmp_path / "t").version() == 0


def test_files_between_are_those_that_may_have_rows_in_the_range(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    table.commit(job(table, "a", [1_000, 5_000]), 5_000, [], {})
    table.commit(job(table, "b", [9_000, 10_000]), 10_000, [], {})
    write_deltalake(str(tmp_path / "t"), rows([3_000, 3_500]), mode="append")
    table = opened(tmp_path / "t")  # the foreign file's statistics are cut to milliseconds
    foreign = next(name for name in table.files if "/" not in name.path)
    assert table.files_between(0, 999) == []
    a, b = (str(tmp_path / "t/data" / name / "part-0.parquet") for name in "ab")
    c = str(tmp_path / "t" / foreign.path)
    assert set(table.files_between(0, 1_000)) == {a}
    assert set(table.files_between(3_400, 9_000)) == {a, b, c}
    assert set(table.files_between(5_999, 9_000)) == {b}
    assert table.files_between(10_999, 99_000) == []


def test_files_without_statistics_are_always_read(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    pq.write_table(rows([5]), tmp_path / "t" / "foreign.parquet")
    size = (tmp_path / "t" / "foreign.parquet").stat().st_size
    add = {
        "path": "foreign.parquet",
        "partitionValues": {},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
    }
    (tmp_path / "t/_delta_log/00000000000000000001.json").write_text(json.dumps({"add": add}))
    table = opened(tmp_path / "t")
    assert table.files == (LiveFile("foreign.parquet", 1, size, None, None),)
    assert table.files_between(100, 200) == [str(tmp_path / "t" / "foreign.parquet")]


def test_a_rebuild_replaces_all_files_at_once(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    update(table, 2)
    table.commit(job(table, "new", [7, 8]), 8, [], {}, replacing=SCHEMA)
    assert [name.path for name in table.files] == ["data/new/part-0.parquet"]
    assert (table.sequence, table.freshness) == (3, 8)
    assert instants(tmp_path / "t") == [7, 8]
    assert StoredTable.open(tmp_path / "t", "ts").files == table.files


def test_a_rebuild_with_other_columns_changes_files_and_schema_in_one_commit(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    other = pa.schema([("ts", SCHEMA.field("ts").type), ("n", pa.float64()), ("more", pa.string())])
    (tmp_path / "t/data/new").mkdir()
    pq.write_table(
        pa.table([[7, 8], [0.5, 1.5], ["a", "b"]], schema=other), tmp_path / "t/data/new/1.parquet"
    )
    assert table.commit("data/new", 10, [], {"rebuilt": True}, replacing=other) == table.version == 11
    again = DeltaTable(tmp_path / "t")
    assert again.to_pyarrow_table().to_pydict()["n"] == [0.5, 1.5]
    assert table.schema == StoredTable.open(tmp_path / "t", "ts").schema == other
    assert (str(again.metadata().id), again.metadata().name) == (table.id, "flows")
    assert "delta.deletedFileRetentionDuration" in again.metadata().configuration
    more = pa.table([[20], [2.5], ["c"]], schema=other)
    for number in range(20, 30):  # it is updated and compacted as any other
        (tmp_path / f"t/data/{number}").mkdir()
        pq.write_table(more, tmp_path / f"t/data/{number}/1.parquet")
        table.commit(f"data/{number}", 20, [], {})
    assert table.compact(1 << 20, 1 << 20) == 11
    assert sorted(DeltaTable(tmp_path / "t").to_pyarrow_table()["n"].to_pylist()) == [0.5, 1.5] + 10 * [2.5]


def test_a_rebuild_does_not_go_on_beside_what_another_has_compacted(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    update(table, 2)
    DeltaTable(tmp_path / "t").optimize.compact()
    with pytest.raises(TableTaken):
        table.commit(job(table, "new", [1, 2]), 2, [], {}, replacing=SCHEMA)
    assert instants(tmp_path / "t") == [1, 2]


def test_a_rebuild_cannot_give_a_table_what_nobody_could_open(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    other = pa.schema([*SCHEMA, ("local", pa.list_(pa.timestamp("us")))])
    with pytest.raises(InputError, match="it cannot get such a column"):
        table.commit(job(table, "new", [1]), 1, [], {}, replacing=other)
    assert (DeltaTable(tmp_path / "t").version(), instants(tmp_path / "t")) == (1, [1])


def test_another_schema_is_refused_with_the_differences(tmp_path: Path) -> None:
    opened(tmp_path / "t")
    other = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.string()), ("more", pa.list_(pa.int32()))])
    with pytest.raises(InputError) as caught:
        opened(tmp_path / "t", other)
    assert caught.value.what == (
        f"the table flows at {tmp_path / 't'} differs from its definition: column more is missing; "
        "column text is not defined; column n is long, not string"
    )


def test_nullability_and_order_of_columns_do_not_matter(tmp_path: Path) -> None:
    nested = pa.list_(pa.field("item", pa.int32(), nullable=False))
    first = opened(tmp_path / "t", pa.schema([*SCHEMA, ("list", pa.list_(pa.int32()))]))
    strict = [pa.field(field.name, field.type, nullable=False) for field in reversed(SCHEMA)]
    again = opened(tmp_path / "t", pa.schema([*strict, ("list", nested)]))
    assert again.schema == first.schema


def test_a_reader_is_told_that_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no table at"):
        StoredTable.open(tmp_path / "t", "ts")


def test_a_foreign_partitioned_table_is_refused(tmp_path: Path) -> None:
    DeltaTable.create(tmp_path / "t", SCHEMA, partition_by=["n"])
    with pytest.raises(InputError, match="it is partitioned"):
        opened(tmp_path / "t")


def test_other_threads_read_whole_snapshots_during_commits(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    lengths: list[int] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.0005):
            files = table.files
            lengths.append(len(files))
            assert len({file.path for file in files}) == len(files)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(1, 31):
        update(table, number)
    done.set()
    watcher.join()
    assert lengths == sorted(lengths)
    assert table.files_between(0, 30) == [str(tmp_path / "t" / file.path) for file in table.files]


def test_duckdb_and_filters_see_the_same_rows(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 31):
        update(table, number)
    table.compact(1 << 20, 1 << 20)
    dataset = DeltaTable(tmp_path / "t").to_pyarrow_dataset()  # noqa: F841  (DuckDB finds it by name)
    query = "SELECT epoch_us(ts), n, text FROM dataset WHERE ts > make_timestamptz(28) ORDER BY ts"
    assert duckdb.sql(query).fetchall() == [(29, 29, "row 29"), (30, 30, "row 30")]
