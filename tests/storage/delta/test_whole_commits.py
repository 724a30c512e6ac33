"""Commits that replace all files of a table, beside compactions of our own and of others."""

import random

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.storage.delta import log
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.stored_table import NullTimestamps
from stored_tables import file, instants, job, opened, rows, update


def replace(table, number, *parts):
    folder = job(table, f"whole-{number:06d}", *parts)
    return table.commit(folder, number, [], {"job": number, "changed": [[None, None]]}, whole=True)


def test_a_commit_replaces_all_rows_and_readers_of_the_version_before_keep_theirs(tmp_path):
    table = opened(tmp_path / "t", history_us=10**12)
    for number in (1, 2, 3):
        update(table, number)
    before = DeltaTable(tmp_path / "t").version()
    version = replace(table, 4, [7, None], [9])
    assert (version, table.freshness, sum(live.rows for live in table.files)) == (before + 1, 4, 3)
    stored = DeltaTable(tmp_path / "t").to_pyarrow_table(columns=["ts"])["ts"].cast(pa.int64()).to_pylist()
    assert sorted(stored, key=str) == [7, 9, None]
    assert DeltaTable(tmp_path / "t", version=before).to_pyarrow_table().num_rows == 3
    assert log.commit_information(tmp_path / "t", version)["changed"] == [[None, None]]
    again = opened(tmp_path / "t", history_us=10**12)
    assert {live.path for live in again.files} == {live.path for live in table.files}
    with pytest.raises(NullTimestamps):
        table.commit(job(table, "nulls", [None]), 5, [file("5.csv")], {})


def test_a_table_without_a_time_is_replaced_by_any_rows_or_none(tmp_path):
    schema = pa.schema([("n", pa.int64())])
    table = opened(tmp_path / "t").open_or_create(tmp_path / "u", "u", schema, "", history_us=0)
    for number, numbers in enumerate(([1, 2], [], [3, None, 4]), start=1):
        folder = tmp_path / "u" / "data" / f"{number}"
        folder.mkdir(parents=True)
        if numbers:
            pa.parquet.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), folder / "part-0.parquet")
        table.commit(f"data/{number}", number, [], {}, whole=True)
        found = DeltaTable(tmp_path / "u").to_pyarrow_table()["n"].to_pylist()
        assert sorted(found, key=str) == sorted(numbers, key=str)
        assert (table.freshness, [live.oldest for live in table.files]) == (
            number,
            [None] * bool(numbers),
        )


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_whatever_compacts_meanwhile_the_rows_are_those_of_the_last_commit(tmp_path_factory, seed):
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("t") / "t"
    table = opened(path, history_us=10**12)
    expected: list[int] = []
    for number in range(1, 9):
        if rng.random() < 0.6:
            expected = sorted(rng.sample(range(100), rng.randrange(1, 6)))
            middle = rng.randrange(len(expected) + 1)
            parts = [part for part in (expected[:middle], expected[middle:]) if part]
            replace(table, number, *parts)
        else:
            update(table, number)
            expected = sorted([*expected, number])
        if rng.random() < 0.5:
            DeltaTable(path).optimize.compact()
        if rng.random() < 0.3:
            table.compact(1 << 20, 1 << 24)
        assert instants(path) == expected, (seed, number)


def test_a_second_writer_of_ours_is_told_and_changes_nothing(tmp_path):
    first, second = opened(tmp_path / "t"), opened(tmp_path / "t")
    update(first, 1)
    with pytest.raises(TableTaken):
        replace(second, 2, [5])
    assert instants(tmp_path / "t") == [1]
    replace(first, 3, [6])
    assert instants(tmp_path / "t") == [6]


def test_rows_that_another_writer_adds_are_replaced_too(tmp_path):
    table = opened(tmp_path / "t")
    update(table, 1)
    write_deltalake(tmp_path / "t", rows([2, 3]), mode="append")
    replace(table, 4, [8])
    assert instants(tmp_path / "t") == [8]
