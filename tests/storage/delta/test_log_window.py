"""A writer works in a window on the log's end; what counts is the log."""

import errno
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from cases import rest_in_soak
from freshline.storage.delta import log
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.stored_table import StoredTable
from stored_tables import file, instants, job, opened, rows, update


def windows(path: Path) -> list[Path]:
    folder = path / "_freshline/window"
    return sorted(folder.iterdir()) if folder.exists() else []


class _Between:
    """delta-rs, except that something happens between a commit in the window and its publication."""

    def __init__(self, table: StoredTable, happens) -> None:  # type: ignore[no-untyped-def]
        self._commits, self._table, self._happens = table._commits, table._commits.table, happens
        self._commits.table = self  # type: ignore[assignment]

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        return getattr(self._table, name)

    def create_write_transaction(self, *arguments, **named) -> None:  # type: ignore[no-untyped-def]
        self._table.create_write_transaction(*arguments, **named)
        self._commits.table = self._table  # once
        self._happens()


def test_a_window_holds_the_last_checkpoint_and_what_came_since(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 31):
        update(table, number)
    (window,) = windows(tmp_path / "t")
    assert log.checkpoints(window) == [25]
    assert log.commits(window) == range(25, 31)
    assert log.commits(tmp_path / "t") == range(31)
    for version in range(25, 31):
        assert log.commit_path(window, version).samefile(log.commit_path(tmp_path / "t", version))
    del table
    assert windows(tmp_path / "t") == []
    again = opened(tmp_path / "t")
    assert [log.commits(window) for window in windows(tmp_path / "t")] == [range(25, 31)]
    assert update(again, 31) == 31
    assert instants(tmp_path / "t") == list(range(1, 32))


def test_readers_make_no_window(tmp_path: Path) -> None:
    update(opened(tmp_path / "t"), 1)
    table = StoredTable.open(tmp_path / "t", "ts")
    assert windows(tmp_path / "t") == []
    assert update(table, 2) == 2, "a commit without a window makes one"
    assert len(windows(tmp_path / "t")) == 1


def test_windows_of_dead_processes_are_removed_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as living, subprocess.Popen(["true"]) as dead:
        dead.wait()
        update(opened(tmp_path / "t"), 1)
        for process in (living, dead):
            (tmp_path / f"t/_freshline/window/{process.pid}-x/_delta_log").mkdir(parents=True)
        table = opened(tmp_path / "t")
        names = [window.name.partition("-")[0] for window in windows(tmp_path / "t")]
        assert sorted(names) == sorted([str(living.pid), str(os.getpid())])
        update(table, 2)
        living.kill()


def test_a_foreign_append_just_before_ours_is_published_is_checked_and_ours_comes_after_it(
    tmp_path: Path,
) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    _Between(table, lambda: write_deltalake(str(tmp_path / "t"), rows([90]), mode="append"))
    assert update(table, 2) == 3
    assert (table.version, table.sequence, len(table.files)) == (3, 2, 3)
    assert update(table, 3) == 4
    assert instants(tmp_path / "t") == [1, 2, 3, 90]
    assert [names for _, names in table.consumed_since(0)] == [
        [file("1.csv")],
        [],
        [file("2.csv")],
        [file("3.csv")],
    ]


def test_an_update_of_another_writer_just_before_ours_is_published_fails_ours(tmp_path: Path) -> None:
    first, second = opened(tmp_path / "t"), opened(tmp_path / "t")
    _Between(second, lambda: update(first, 1))
    folder = job(second, "other", [1])
    for _ in range(2):
        with pytest.raises(TableTaken):
            second.commit(folder, 1, [file("1.csv")], {})
    assert (instants(tmp_path / "t"), first.sequence) == ([1], 1)
    update(first, 2)
    assert instants(tmp_path / "t") == [1, 2]


def test_a_foreign_compaction_just_before_ours_is_published_leaves_all_rows_there_once(
    tmp_path: Path,
) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    _Between(table, DeltaTable(tmp_path / "t").optimize.compact)
    assert table.compact(1 << 20, 1 << 20) == 0
    assert (table.version, len(table.files)) == (11, 1)
    update(table, 11)
    assert instants(tmp_path / "t") == list(range(1, 12))


def test_a_window_that_somebody_removed_is_made_anew(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
        shutil.rmtree(windows(tmp_path / "t")[0])
    assert table.compact(1 << 20, 1 << 20) == 10
    shutil.rmtree(windows(tmp_path / "t")[0])
    table.checkpoint()
    assert log.checkpoints(tmp_path / "t") == [11]
    _Between(table, lambda: shutil.rmtree(windows(tmp_path / "t")[0]))
    with pytest.raises(FileNotFoundError):
        update(table, 11)
    assert table.commit("data/000011", 11, [file("11.csv")], {}) == 12
    assert instants(tmp_path / "t") == list(range(1, 12))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EMLINK])
def test_a_commit_that_cannot_be_published_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)

    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    folder = job(table, "x", [2])
    with monkeypatch.context() as patched:
        _Between(table, lambda: patched.setattr("freshline.storage.delta.log_window.os.link", refuse))
        with pytest.raises(OSError, match=os.strerror(number)):
            table.commit(folder, 2, [file("2.csv")], {})
    assert (table.version, instants(tmp_path / "t")) == (1, [1])
    assert table.commit(folder, 2, [file("2.csv")], {}) == 2
    assert instants(tmp_path / "t") == [1, 2]


def test_what_may_not_be_linked_is_copied_into_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 31):
        update(table, number)
    link = os.link

    def only_ours(source: Path, target: Path) -> None:
        """As Linux does with `protected_hardlinks`."""
        if Path(source).parent == tmp_path / "t/_delta_log" and Path(source).exists():
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        link(source, target)

    monkeypatch.setattr("freshline.storage.delta.log_window.os.link", only_ours)
    table = opened(tmp_path / "t")
    write_deltalake(str(tmp_path / "t"), rows([90]), mode="append")
    for number in range(31, 61):
        update(table, number)
    _Between(table, lambda: write_deltalake(str(tmp_path / "t"), rows([91]), mode="append"))
    update(table, 61)
    assert instants(tmp_path / "t") == [*range(1, 62), 90, 91]


def test_a_commit_that_was_published_in_spite_of_an_error_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t")
    link = os.link

    def link_twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    with monkeypatch.context() as patched:
        _Between(table, lambda: patched.setattr("freshline.storage.delta.log_window.os.link", link_twice))
        assert update(table, 1) == 1
    assert update(table, 2) == 2
    assert instants(tmp_path / "t") == [1, 2]


@pytest.mark.parametrize("meanwhile", [[], [90]])
def test_what_is_left_unpublished_in_a_window_is_nobodys(tmp_path: Path, meanwhile: list[int]) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    _Between(table, interrupt)
    with pytest.raises(KeyboardInterrupt):
        update(table, 2)
    assert log.commits(windows(tmp_path / "t")[0]) == range(3)
    for instant in meanwhile:
        write_deltalake(str(tmp_path / "t"), rows([instant]), mode="append")
    assert table.commit("data/000002", 2, [file("2.csv")], {}) == 2 + len(meanwhile)
    assert instants(tmp_path / "t") == [1, 2, *meanwhile]


@pytest.mark.parametrize(
    "hint",
    rest_in_soak(
        [None, "{", '{"version":7}', "", "[]", '{"version":"x"}', '{"version":-1}', '{"version":99}'], 3
    ),
)
def test_a_hint_that_is_missing_wrong_or_old_is_no_harm(tmp_path: Path, hint: str | None) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 31):
        update(table, number)
        if number == 7:
            table.checkpoint()
    path = log.hint_path(tmp_path / "t")
    path.unlink() if hint is None else path.write_text(hint)
    again = opened(tmp_path / "t")
    assert (again.version, again.sequence) == (30, 30)
    assert update(again, 31) == 31
    assert instants(tmp_path / "t") == list(range(1, 32))


def test_a_log_that_begins_with_another_writers_checkpoint_in_parts_can_be_opened(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 6):
        update(table, number)
    table.checkpoint()
    update(table, 6)
    whole = log.checkpoint_path(tmp_path / "t", 5)
    whole.rename(whole.with_name(f"{5:020d}.checkpoint.{1:010d}.{1:010d}.parquet"))
    log.hint_path(tmp_path / "t").write_text('{"version":5,"size":10,"parts":1}')
    for version in range(5):
        log.commit_path(tmp_path / "t", version).unlink()
    again = opened(tmp_path / "t")
    assert (again.version, again.sequence) == (6, 6)
    update(again, 7)
    assert instants(tmp_path / "t") == list(range(1, 8))


def test_nothing_lists_a_long_log_to_open_it_and_to_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 31):
        update(table, number)
    listed: list[str] = []
    listdir = os.listdir

    def noted(path: Path) -> list[str]:
        listed.append(str(path))
        return listdir(path)

    monkeypatch.setattr("freshline.storage.delta.log.os.listdir", noted)
    again = opened(tmp_path / "t")
    for number in range(31, 61):
        update(again, number)
    assert list(again.consumed_since(30)) == [(n, [file(f"{n}.csv")]) for n in range(31, 61)]
    assert str(tmp_path / "t/_delta_log") not in listed
    assert listed, "windows are"
