"""Which files have been consumed: by table and name, for ever."""

import logging
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import write_deltalake

from freshline.base.errors import InputError
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.ledger import Ledger
from stored_tables import file, opened, rows, update


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    yield ledger
    ledger.close()


def test_a_ledger_that_cannot_be_opened_or_written_is_bad_input_and_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder.sqlite").mkdir()
    Ledger(tmp_path / "fixed.sqlite").close()
    content = bytearray((tmp_path / "fixed.sqlite").read_bytes())
    content[18] = 3  # SQLite only reads a file of a version of writing that it does not know
    (tmp_path / "fixed.sqlite").write_bytes(content)
    for name, reason in (("folder", "unable to open database file"), ("fixed", "readonly database")):
        with pytest.raises(InputError, match=reason) as caught:
            Ledger(tmp_path / f"{name}.sqlite")
        assert caught.value.what.startswith(f"the ledger {tmp_path / name}.sqlite cannot be opened: ")
        assert "rebuilds it from the tables' logs" in caught.value.remedy
    assert (tmp_path / "fixed.sqlite").read_bytes() == content
    assert not list(tmp_path.glob("*.damaged-*"))


def test_a_recorded_file_is_found_by_its_table_and_name(ledger: Ledger, tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    ledger.catch_up("flows", table)
    assert (ledger.applied("flows"), ledger.find("flows", "1.csv")) == (0, None)
    ledger.record("flows", update(table, 1), [file("1.csv"), file("süß/2.csv")])
    assert ledger.applied("flows") == 1
    assert ledger.find("flows", "1.csv") == file("1.csv")
    assert ledger.find("flows", "süß/2.csv") == file("süß/2.csv")
    assert (ledger.find("hosts", "1.csv"), ledger.applied("hosts")) == (None, -1)
    again = Ledger(ledger.path)
    assert (again.applied("flows"), again.find("flows", "1.csv")) == (1, file("1.csv"))
    again.close()


def test_the_ledger_follows_the_log_from_where_it_is(ledger: Ledger, tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    ledger.catch_up("flows", table)
    ledger.record("flows", update(table, 1), [file("1.csv")])
    for number in range(2, 61):  # a crash before any of them is recorded, the log cleaned meanwhile
        update(table, number)
    write_deltalake(str(tmp_path / "t"), rows([90]), mode="append")
    ledger.catch_up("flows", opened(tmp_path / "t"))
    assert ledger.applied("flows") == 61
    assert [ledger.find("flows", f"{n}.csv") for n in range(1, 61)] == [
        file(f"{n}.csv") for n in range(1, 61)
    ]


def test_commits_that_were_not_recorded_are_read_with_the_next_one(ledger: Ledger, tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    ledger.catch_up("flows", table)
    update(table, 1)
    ledger.record("flows", update(table, 2), [file("2.csv")])
    assert (ledger.applied("flows"), ledger.find("flows", "1.csv")) == (2, file("1.csv"))
    for number in range(3, 11):
        ledger.record("flows", update(table, number), [file(f"{number}.csv")])
    assert table.compact(1 << 20, 1 << 20) == 10
    ledger.record("flows", update(table, 11), [file("11.csv")])
    assert (ledger.applied("flows"), ledger.find("flows", "11.csv")) == (12, file("11.csv"))


def test_a_commit_of_a_table_that_is_not_followed_hides_no_gap(ledger: Ledger, tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    ledger.record("flows", update(table, 1), [file("1.csv")])
    assert (ledger.applied("flows"), ledger.find("flows", "1.csv")) == (-1, file("1.csv"))


def test_files_consumed_without_a_commit_are_remembered(ledger: Ledger) -> None:
    empty = ConsumedFile("empty.csv", 0, 1, "nothing")
    ledger.remember("flows", empty)
    assert (ledger.find("flows", "empty.csv"), ledger.applied("flows")) == (empty, -1)


def test_a_table_made_again_loads_its_files_again(ledger: Ledger, tmp_path: Path) -> None:
    first = opened(tmp_path / "t")
    update(first, 1)
    other = opened(tmp_path / "other")
    update(other, 2)
    ledger.catch_up("flows", first)
    ledger.catch_up("hosts", other)
    (tmp_path / "t").rename(tmp_path / "away")
    ledger.catch_up("flows", opened(tmp_path / "t"))
    assert (ledger.applied("flows"), ledger.find("flows", "1.csv")) == (0, None)
    assert ledger.find("hosts", "2.csv") == file("2.csv")


def test_a_lost_ledger_is_made_anew_from_logs_that_have_been_cleaned(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 80):
        update(table, number)
    table.clean_log(table.version)
    assert not (tmp_path / "t/_delta_log/00000000000000000001.json").exists()
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.catch_up("flows", table)
    assert ledger.applied("flows") == 79
    assert all(ledger.find("flows", f"{number}.csv") for number in range(1, 80))
    ledger.close()


def test_a_file_that_is_no_database_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    for number in (1, 2):
        (tmp_path / "ledger.sqlite").write_bytes(b"x" * 10_000)
        ledger = Ledger(tmp_path / "ledger.sqlite")
        ledger.catch_up("flows", table)
        assert ledger.find("flows", "1.csv") == file("1.csv")
        ledger.close()
        assert (tmp_path / f"ledger.sqlite.damaged-{number}").read_bytes() == b"x" * 10_000
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


def test_damage_found_on_the_way_is_mended(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 4):
        update(table, number)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.catch_up("flows", table)
    for number in range(300):  # more pages than one
        ledger.remember("hosts", file(f"{number}.csv"))
    ledger.close()
    damaged = bytearray((tmp_path / "ledger.sqlite").read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)  # the first page still is a database's
    (tmp_path / "ledger.sqlite").write_bytes(damaged)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.catch_up("flows", table)
    assert [ledger.find("flows", f"{n}.csv") for n in range(1, 4)] == [file(f"{n}.csv") for n in range(1, 4)]
    assert (tmp_path / "ledger.sqlite.damaged-1").exists()
    ledger.close()


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    def work(thread: int) -> None:
        for number in range(50):
            ledger.remember(f"t{thread}", file(f"{number}.csv"))
            assert ledger.find(f"t{thread}", f"{number}.csv") == file(f"{number}.csv")

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = [ledger.find(f"t{n}", f"{m}.csv") for n in range(4) for m in range(50)]
    assert None not in found


def test_looking_up_uses_the_key_only(ledger: Ledger) -> None:
    connection = sqlite3.connect(ledger.path)
    plan = connection.execute(
        "EXPLAIN QUERY PLAN SELECT * FROM consumed WHERE table_name = 'a' AND name = 'b'"
    ).fetchall()
    connection.close()
    assert [row[3] for row in plan] == ["SEARCH consumed USING PRIMARY KEY (table_name=? AND name=?)"]
