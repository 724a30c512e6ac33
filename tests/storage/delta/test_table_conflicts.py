"""Several writers of one table, and commits whose outcome is in doubt."""

import os
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError

from freshline.storage.delta import log
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.ledger import Ledger
from freshline.storage.delta.stored_table import StoredTable
from stored_tables import file, instants, job, opened, rows, update


def consumed(table: StoredTable) -> list[tuple[int, list[str]]]:
    return [(version, [file.name for file in files]) for version, files in table.consumed_since(-1)]


def test_the_second_of_two_writers_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "t"), opened(tmp_path / "t")
    update(first, 1)
    folder = job(second, "other", [1])
    for _ in range(2):  # not even on a second try from the same snapshot
        with pytest.raises(TableTaken):
            second.commit(folder, 1, [file("1.csv")], {})
    assert (second.version, second.sequence, second.freshness, second.files) == (0, 0, None, ())
    assert instants(tmp_path / "t") == [1]
    update(first, 2)
    update(opened(tmp_path / "t"), 3)
    assert instants(tmp_path / "t") == [1, 2, 3]


def test_a_writer_whose_snapshot_is_cleaned_from_the_log_is_refused(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "t"), opened(tmp_path / "t")
    for number in range(1, 6):
        update(first, number)
        first.checkpoint()
    first.clean_log(first.version)
    write_deltalake(str(tmp_path / "t"), rows([90]), mode="append")
    with pytest.raises(TableTaken):
        update(second, 1_000)
    assert instants(tmp_path / "t") == [1, 2, 3, 4, 5, 90]


def test_foreign_compactions_and_appends_do_not_hinder_an_update(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 4):
        update(table, number)
    foreign = DeltaTable(tmp_path / "t")
    foreign.optimize.compact()
    write_deltalake(str(tmp_path / "t"), rows([90]), mode="append")
    assert update(table, 4) == 6
    assert (table.version, table.sequence, table.freshness) == (6, 4, 4)
    assert set(table.files) == set(opened(tmp_path / "t").files)
    assert len(table.files) == 3
    assert instants(tmp_path / "t") == [1, 2, 3, 4, 90]
    assert consumed(table) == [
        (0, []),
        (1, ["1.csv"]),
        (2, ["2.csv"]),
        (3, ["3.csv"]),
        (4, []),
        (5, []),
        (6, ["4.csv"]),
    ]


def test_a_foreign_change_of_the_tables_properties_is_a_conflict(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    DeltaTable(tmp_path / "t").alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
    with pytest.raises(TableTaken):
        update(table, 1)
    update(opened(tmp_path / "t"), 2)
    assert instants(tmp_path / "t") == [2]


def test_compactions_of_two_writers_conflict_with_their_updates(tmp_path: Path) -> None:
    first = opened(tmp_path / "t")
    for number in range(1, 11):
        update(first, number)
    second = opened(tmp_path / "t")
    update(first, 11)
    with pytest.raises(TableTaken):
        second.compact(1 << 20, 1 << 20)
    assert first.compact(1 << 20, 1 << 20) == 11
    assert instants(tmp_path / "t") == list(range(1, 12))


class _Doubtful:
    """delta-rs, except that something happens around one commit."""

    def __init__(self, table: DeltaTable, around) -> None:  # type: ignore[no-untyped-def]
        self._table = table
        self._around = around

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        return getattr(self._table, name)

    def create_write_transaction(self, *arguments, **named) -> None:  # type: ignore[no-untyped-def]
        self._around(lambda: self._table.create_write_transaction(*arguments, **named))


def test_an_error_after_the_commit_does_not_undo_it(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)

    def fail_afterwards(commit) -> None:  # type: ignore[no-untyped-def]
        commit()
        raise OSError("no answer")

    table._commits.table = _Doubtful(table._commits.table, fail_afterwards)  # type: ignore[assignment]
    assert update(table, 2) == 2
    assert (table.version, table.sequence, table.freshness, len(table.files)) == (2, 2, 2, 2)
    assert instants(tmp_path / "t") == [1, 2]


@pytest.mark.parametrize("error", [OSError("no space"), DeltaError("lost"), CommitFailedError("lost")])
def test_an_error_before_the_commit_leaves_the_table_ours(tmp_path: Path, error: Exception) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    delta = table._commits.table

    def fail(commit) -> None:  # type: ignore[no-untyped-def]
        raise error

    table._commits.table = _Doubtful(delta, fail)  # type: ignore[assignment]
    folder = job(table, "x", [2])
    with pytest.raises(type(error)):
        table.commit(folder, 2, [], {})
    assert (table.version, table.sequence, len(table.files)) == (1, 1, 1)
    table._commits.table = delta
    assert table.commit(folder, 2, [], {}) == 2
    assert instants(tmp_path / "t") == [1, 2]


def test_a_commit_below_a_cleaned_log_is_seen_by_nobody(tmp_path: Path) -> None:
    """A writer that sleeps between looking for the newest version and writing the next one."""
    first, second = opened(tmp_path / "t"), opened(tmp_path / "t")

    def sleep_before(commit) -> None:  # type: ignore[no-untyped-def]
        commit()  # into its window: it has not been published yet
        for number in range(1, 8):
            update(first, number)
            first.checkpoint()
        first.clean_log(first.version)

    second._commits.table = _Doubtful(second._commits.table, sleep_before)  # type: ignore[assignment]
    with pytest.raises(TableTaken):
        second.commit(job(second, "stray", [50]), 50, [file("stray.csv")], {})
    assert (tmp_path / "t/_delta_log/00000000000000000001.json").exists(), "it was not published at all"
    assert first.sequence == 7
    assert instants(tmp_path / "t") == list(range(1, 8))
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.catch_up("t", first)
    assert ledger.find("t", "stray.csv") is None
    assert ledger.find("t", "7.csv") == file("7.csv")
    ledger.close()
    update(first, 8)
    first.checkpoint()
    first.clean_log(first.version)
    assert "00000000000000000001.json" not in os.listdir(tmp_path / "t/_delta_log")
    assert [names for _, names in consumed(first)] == [[], *([f"{n}.csv"] for n in range(1, 9))]


def test_after_a_commit_that_could_not_be_verified_the_table_must_be_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t")

    def unreadable(path: Path, version: int) -> dict[str, str]:
        raise OSError("input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(log, "commit_information", unreadable)
        with pytest.raises(OSError, match="input/output error"):
            update(table, 1)
    with pytest.raises(TableTaken):
        table.commit(job(table, "again", [1]), 1, [file("1.csv")], {})
    assert consumed(opened(tmp_path / "t")) == [(0, []), (1, ["1.csv"])]
    assert instants(tmp_path / "t") == [1]


def test_files_that_somebody_else_compacted_are_not_compacted_once_more(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    DeltaTable(tmp_path / "t").optimize.compact()
    assert table.compact(1 << 20, 1 << 20) == 0
    assert instants(tmp_path / "t") == list(range(1, 11))
    assert (table.version, len(table.files)) == (11, 1)
    update(table, 11)
    assert instants(tmp_path / "t") == list(range(1, 12))
