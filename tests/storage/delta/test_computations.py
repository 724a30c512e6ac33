"""The record of what a table's rows were computed by, and columns that come later."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from freshline.definitions.computation import Computation
from freshline.storage.delta import computations
from freshline.storage.delta.commits import Commits, TableTaken
from freshline.storage.delta.log import commit_information
from freshline.storage.delta.migration import add_columns
from freshline.storage.delta.stored_table import StoredTable
from stored_tables import SCHEMA, file, instants, job, opened, rows, update

OLD, NEW = Computation(sql="SELECT ts, n FROM t"), Computation(sql="SELECT ts, -n AS n FROM t", lookback_us=7)
WIDER = pa.schema([*SCHEMA, ("more", pa.int64())])


def wider_row(table: StoredTable, number: int, more: int) -> None:
    folder = table.path / "data" / f"{number:06d}"
    folder.mkdir(parents=True)
    pq.write_table(rows([number]).append_column("more", pa.array([more])), folder / "part-0.parquet")
    table.commit(f"data/{number:06d}", number, [file(f"{number}.csv")], {"job": number})


def test_a_table_says_what_it_is_computed_by_and_its_history_how_that_changed(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    assert table.computation is None
    table.record(OLD, "made")
    update(table, 1)
    table.record(NEW, "accepted")
    assert (table.version, table.sequence, table.freshness) == (3, 1, 1)
    for reader in (table, opened(tmp_path / "t")):
        assert reader.computation == NEW
    change = commit_information(tmp_path / "t", 3)["computation"]
    assert (change["how"], change["before"]["sql"], change["now"]["sql"]) == ("accepted", OLD.sql, NEW.sql)
    assert instants(tmp_path / "t") == [1]


def test_a_table_is_made_with_its_record_in_one_commit(tmp_path: Path) -> None:
    table = StoredTable.open_or_create(tmp_path / "t", "flows", SCHEMA, "ts", OLD)
    assert (table.version, table.sequence, table.freshness, table.computation) == (0, 0, None, OLD)
    update(table, 1)
    again = StoredTable.open_or_create(tmp_path / "t", "flows", SCHEMA, "ts", NEW)
    assert (again.version, again.computation) == (1, OLD)  # what is there already is not made


def test_the_record_outlives_checkpoints_cleaning_compaction_and_foreign_writers(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    table.record(OLD, "made")
    for number in range(1, 10):
        update(table, number)
        table.checkpoint()
    assert table.clean_log(table.version) > 0
    assert table.compact(1 << 20, 1 << 20) == 9
    foreign = DeltaTable(tmp_path / "t")
    write_deltalake(str(tmp_path / "t"), rows([90]), mode="append")
    foreign.update_incremental()
    foreign.create_checkpoint()
    foreign.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    again = opened(tmp_path / "t")
    assert (again.computation, again.sequence, again.freshness) == (OLD, 9, 9)
    consumed = [name.name for _, files in again.consumed_since(-1) for name in files]
    assert consumed == [f"{number}.csv" for number in range(1, 10)]


def test_a_line_whose_commit_never_came_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = opened(tmp_path / "t")
    table.record(OLD, "made")
    update(table, 1)

    def crash(*arguments: object, **others: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Commits, "transact", crash)
        with pytest.raises(KeyboardInterrupt):
            table.record(NEW, "accepted")
        with pytest.raises(KeyboardInterrupt):
            table.commit(job(table, "new", [5]), 1, [], {}, SCHEMA, NEW)
    assert opened(tmp_path / "t").computation == OLD
    update(opened(tmp_path / "t"), 2)
    assert opened(tmp_path / "t").computation == OLD
    again = opened(tmp_path / "t")
    again.commit(job(again, "newer", [2]), 2, [], {}, SCHEMA, NEW)
    assert opened(tmp_path / "t").computation == NEW
    assert instants(tmp_path / "t") == [2]


def test_a_line_that_was_cut_short_spoils_no_other(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    table.record(OLD, "made")
    path = tmp_path / "t" / "_freshline" / "computations.jsonl"
    with path.open("ab") as lines:
        lines.write(b'{"number":2,"how":"accepted","comp')
    assert opened(tmp_path / "t").computation == OLD
    table.record(NEW, "accepted")
    assert opened(tmp_path / "t").computation == NEW
    whole = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    assert [(line["number"], line["how"]) for line in whole] == [(1, "made"), (2, "accepted")]


def test_a_record_that_was_lost_is_none_and_its_number_is_not_used_again(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    table.record(OLD, "made")
    (tmp_path / "t" / "_freshline" / "computations.jsonl").unlink()
    assert opened(tmp_path / "t").computation is None
    assert computations.add(tmp_path / "t", NEW, "accepted", 1) == 2
    assert opened(tmp_path / "t").computation is None  # that was not committed


def test_of_two_writers_the_second_cannot_change_the_record(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "t"), opened(tmp_path / "t")
    first.record(OLD, "made")
    with pytest.raises(TableTaken):
        second.record(NEW, "made")
    with pytest.raises(TableTaken):
        add_columns(second, [WIDER.field("more")], NEW)
    update(first, 1)
    assert opened(tmp_path / "t").computation == OLD


def test_columns_are_added_in_one_commit_and_null_in_the_rows_there_were(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    table.record(OLD, "made")
    update(table, 1)
    files = table.files
    add_columns(table, [pa.field("more", pa.int64(), nullable=False)], NEW)
    again = opened(tmp_path / "t", WIDER)
    assert (again.version, again.sequence, again.freshness) == (table.version + 1, 1, 1)
    assert (again.computation, again.files) == (NEW, files)
    assert commit_information(tmp_path / "t", again.version)["migrated"] == ["more"]
    wider_row(again, 2, 5)
    assert sorted(DeltaTable(tmp_path / "t").to_pyarrow_table()["more"].to_pylist(), key=str) == [5, None]
    with pytest.raises(TableTaken):  # one that has the table open as it was
        update(table, 3)


def test_files_from_before_and_after_a_column_came_are_merged_with_right_statistics(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 5):
        update(table, number)
    add_columns(table, [WIDER.field("more")], None)
    table = opened(tmp_path / "t", WIDER)
    for number in range(5, 9):
        wider_row(table, number, number)
    assert table.compact(1 << 20, 1 << 20) == 8
    stored = DeltaTable(tmp_path / "t")
    expected = [None] * 4 + [5, 6, 7, 8]
    assert stored.to_pyarrow_table().sort_by("ts")["more"].to_pylist() == expected
    adds = pa.table(stored.get_add_actions(flatten=True)).to_pylist()
    assert [(add["num_records"], add["null_count.more"], add["null_count.ts"]) for add in adds] == [(8, 4, 0)]
    assert instants(tmp_path / "t") == list(range(1, 9))
    table.checkpoint()
    assert opened(tmp_path / "t", WIDER).files == table.files
