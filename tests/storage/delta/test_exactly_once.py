"""Writers that are killed, and writers that both believe they own the table, load every file once."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from cases import cases
from freshline.storage.delta.ledger import Ledger
from stored_tables import file, instants, opened

LOADER = Path(__file__).parents[2] / "helpers" / "loader_process.py"
KILLED = Path(__file__).parents[2] / "helpers" / "killed_process.py"


def start(storage: Path, count: int) -> subprocess.Popen[str]:
    """A loader that waits for `go`."""
    command = [sys.executable, str(LOADER), str(storage), str(count)]
    loader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert loader.stdout is not None
    assert loader.stdout.readline() == "up\n"
    return loader


def go(loader: subprocess.Popen[str]) -> None:
    assert loader.stdin is not None
    loader.stdin.write("go\n")
    loader.stdin.flush()


def check_all_loaded_once(storage: Path, count: int) -> None:
    table = opened(storage / "t")
    assert instants(storage / "t") == list(range(1, count + 1))
    assert (table.sequence, table.freshness) == (count, count)
    followed, rebuilt = Ledger(storage / "ledger.sqlite"), Ledger(storage / "new.sqlite")
    for ledger in (followed, rebuilt):
        ledger.catch_up("t", table)
        for number in range(1, count + 1):
            assert ledger.find("t", f"{number}.csv") == file(f"{number}.csv")
        ledger.close()


@pytest.mark.soak
def test_a_writer_killed_at_random_moments_loses_and_repeats_nothing(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print("seed", seed)
    chance = random.Random(seed)
    count = 150
    for _ in range(6):
        with start(tmp_path, count) as loader:
            go(loader)
            try:
                loader.wait(chance.uniform(0, 0.4))
            except subprocess.TimeoutExpired:
                loader.kill()
    with start(tmp_path, count) as loader:
        go(loader)
        loader.communicate()
        assert loader.returncode == 0
    check_all_loaded_once(tmp_path, count)


def test_writers_that_both_believe_they_own_the_table_load_nothing_twice(tmp_path: Path) -> None:
    opened(tmp_path / "t")
    Ledger(tmp_path / "ledger.sqlite").close()
    with start(tmp_path, 60) as first, start(tmp_path, 60) as second:
        go(first)
        go(second)
        answers = [first.communicate()[0], second.communicate()[0]]
        assert (first.returncode, second.returncode) == (0, 0)
    assert sum(answer.count("ready") for answer in answers) > 2, "they never met"
    check_all_loaded_once(tmp_path, 60)


@pytest.mark.sampled
def test_a_writer_killed_at_any_line_that_commits_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """At every 23rd of some 1,400 lines, or in `make test` at every 138th; others each time."""
    step = 23 * 6 // cases(6, one_in=6)
    first = random.randint(1, step)
    command = [sys.executable, str(KILLED), str(tmp_path), str(first), str(step)]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == 0, f"first line {first}: {killed.stderr}"
    assert int(killed.stdout.rpartition("lines ")[2]) > 500
