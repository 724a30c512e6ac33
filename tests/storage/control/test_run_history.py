"""What is remembered of finished jobs, on a real SQLite file."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.planning.costs.fit import PastRun
from freshline.storage.control.history import RUNS_KEPT, History
from freshline.storage.control.layout import StorageLayout


def run(number: int) -> PastRun:
    return PastRun(started=number, duration_us=250_000 + number, rows=8_000, length_us=3_000_000, files=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return StorageLayout(tmp_path / "warehouse").control().history


def test_runs_come_back_oldest_first_by_table_also_after_reopening(path):
    with History(path) as history:
        for number in range(3):
            history.record("packets", run(number))
        history.record("alerts", run(7))
        assert history.runs("packets") == [run(0), run(1), run(2)]
    with History(path, read_only=True) as history:
        assert history.runs("packets") == [run(0), run(1), run(2)]
        assert history.runs("alerts") == [run(7)]
        assert history.runs("unknown") == []


def test_a_run_remembers_how_many_tracks_were_busy_and_its_tasks(path):
    beside = run(1)._replace(busy=3, tasks=2)
    with History(path) as history:
        history.record("packets", beside)
        assert history.runs("packets") == [beside]


def test_a_history_of_an_earlier_version_is_read_and_then_written(path):
    with History(path) as history:
        history.record("packets", run(0))
    with sqlite3.connect(path) as older:
        older.execute("ALTER TABLE runs DROP COLUMN busy")
        older.execute("ALTER TABLE runs DROP COLUMN tasks")
    older.close()
    with History(path, read_only=True) as history:
        assert history.runs("packets") == [run(0)]
    with History(path) as history:
        history.record("packets", run(1)._replace(busy=2))
        assert history.runs("packets") == [run(0), run(1)._replace(busy=2)]


def test_a_missing_history_is_empty_and_is_not_created_by_reading(path):
    with History(path, read_only=True) as history:
        assert history.runs("packets") == []
    assert not path.parent.exists()


def test_reading_changes_nothing_and_leaves_no_files_behind(path):
    with History(path) as history:
        history.record("packets", run(0))
    with History(path, read_only=True) as history:
        assert history.runs("packets") == [run(0)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            history.record("packets", run(1))
    assert [file.name for file in path.parent.iterdir()] == ["history.sqlite"]


def test_a_file_without_tables_is_an_empty_history(path):
    path.parent.mkdir(parents=True)
    path.touch()
    with History(path, read_only=True) as history:
        assert history.runs("packets") == []


def test_only_the_newest_runs_are_kept(path):
    with History(path) as history:
        for number in range(RUNS_KEPT + 399):
            history.record("packets", run(number))
        history.record("alerts", run(0))
        assert history.runs("packets") == [run(number) for number in range(399, RUNS_KEPT + 399)]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (RUNS_KEPT + 199 + 1,)
    connection.close()
    with History(path) as history:
        history.record("packets", run(RUNS_KEPT + 399))
        assert history.runs("packets")[-1] == run(RUNS_KEPT + 399)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (RUNS_KEPT + 1,)
    connection.close()


def test_threads_record_and_read_at_once(path):
    with History(path) as history:

        def work(table: str) -> None:
            for number in range(200):
                history.record(table, run(number))
                assert history.runs(table)[-1] == run(number)

        threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(4):
            assert history.runs(f"t{number}") == [run(number) for number in range(200)]


def test_runs_outlive_a_process_that_is_killed(path):
    program = (
        "import os, pathlib, sys\n"
        "from freshline.planning.costs.fit import PastRun\n"
        "from freshline.storage.control.history import History\n"
        "history = History(pathlib.Path(sys.argv[1]))\n"
        "for number in range(50):\n"
        "    history.record('packets', PastRun(number, 250_000 + number, 8_000, 3_000_000, 1))\n"
        "os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, path], check=False).returncode == -9
    with History(path, read_only=True) as history:
        assert history.runs("packets") == [run(number) for number in range(50)]


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_that_is_no_history_is_bad_input(path, read_only):
    path.parent.mkdir(parents=True)
    path.write_text("not a database, but long enough to look like one" * 100, encoding="utf-8")
    with pytest.raises(InputError, match="cannot be opened: file is not a database") as raised:
        History(path, read_only)
    assert raised.value.remedy == "Give access to it, or move it away: Freshline then learns the costs again"
