"""Parquet files are read where a crash is survived."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cases import rest_in_soak
from freshline.landing.parquet_process import ParquetProcess
from freshline.landing.records import FileRecords, UnreadableFile
from freshline.sql.columns import parse_columns
from freshline_lab.campaigns.kills.damage import write_files

NOON = 1_714_996_800_000_000
NAMES = ["src", "ts", "n"]
WAIT_S = 60


@pytest.fixture
def process() -> Iterator[ParquetProcess]:
    process = ParquetProcess()
    yield process
    process.close()


def good(folder: Path) -> Path:
    columns = {"src": ["x", "y"], "ts": pa.array([NOON, NOON + 1], pa.timestamp("us")), "n": [1, 2]}
    pq.write_table(pa.table(columns), folder / "good.parquet")
    return folder / "good.parquet"


def read(process: ParquetProcess, path: Path) -> FileRecords:
    return process.read(path, parse_columns("src string, ts timestamp, n long"), "ts")


def until(happened: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WAIT_S
    while not happened():
        assert time.monotonic() < give_up_at, "it never happened"
        time.sleep(0.02)


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


def test_one_process_reads_all_files(process: ParquetProcess, tmp_path: Path) -> None:
    path, pid = good(tmp_path), process.pid
    assert [read(process, path) for _ in range(3)] == [FileRecords(2, NOON, NOON + 1)] * 3
    with pytest.raises(FileNotFoundError):
        read(process, tmp_path / "none.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(UnreadableFile):
        read(process, tmp_path / "bad.parquet")
    assert read(process, path).count == 2
    assert process.pid == pid


def damaged(path: Path) -> Path:
    """Its column `ts` says in its statistics' place that it is of another type: Arrow aborts over that."""
    data = bytearray(path.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    kind = data.index(b"\x1c\x15\x04\x19", footer) + 2  # INT64, in Thrift's compact form
    data[kind] = 0
    path.with_name("bad.parquet").write_bytes(data)
    return path.with_name("bad.parquet")


def test_a_file_that_makes_arrow_abort_is_unreadable_and_others_are_read(
    process: ParquetProcess, tmp_path: Path
) -> None:
    path = good(tmp_path)
    bad = damaged(path)
    pid = process.pid
    for _ in range(2):
        with pytest.raises(UnreadableFile) as raised:
            read(process, bad)
        assert raised.value.reason == "it is damaged: reading it ended with SIGABRT"
    assert read(process, path).count == 2
    assert process.pid != pid


def ended_by(process: ParquetProcess, path: Path, number: int) -> list[Exception]:
    """What a read comes to during which the process gets a signal: it is held until it has been asked."""
    read(process, path)
    assert process._process is not None
    assert process._process.stdin is not None
    pid, questions = process._process.pid, process._process.stdin.fileno()
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")
    came: list[Exception] = []

    def ask() -> None:
        try:
            read(process, path)
        except (UnreadableFile, OSError) as error:
            came.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: any(fcntl.ioctl(questions, termios.FIONREAD, b"\0" * 4)))
    os.kill(pid, number)
    os.kill(pid, signal.SIGCONT)
    asking.join(WAIT_S)
    return came


@pytest.mark.parametrize("number", rest_in_soak([signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS]))
def test_a_crash_is_the_files_fault(process: ParquetProcess, tmp_path: Path, number: int) -> None:
    (error,) = ended_by(process, good(tmp_path), number)
    assert isinstance(error, UnreadableFile)
    assert read(process, good(tmp_path)).count == 2


@pytest.mark.parametrize("number", rest_in_soak([signal.SIGKILL, signal.SIGTERM, signal.SIGALRM]))
def test_a_process_that_somebody_ended_is_no_fault_of_the_file(
    process: ParquetProcess, tmp_path: Path, number: int
) -> None:
    (error,) = ended_by(process, good(tmp_path), number)
    assert isinstance(error, OSError)
    assert f"ended with {signal.Signals(number).name}" in str(error)
    assert read(process, good(tmp_path)).count == 2


def test_a_process_that_died_between_two_files_is_begun_anew(process: ParquetProcess, tmp_path: Path) -> None:
    path = good(tmp_path)
    read(process, path)
    begun = process._process
    assert begun is not None
    begun.send_signal(signal.SIGABRT)
    until(lambda: begun.poll() is not None)
    assert read(process, path).count == 2


def test_a_process_that_cannot_begin_is_no_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = good(tmp_path)
    monkeypatch.setattr(sys, "path", [])
    process = ParquetProcess()
    with pytest.raises(ChildProcessError, match="ended with exit code 1"):
        read(process, path)
    monkeypatch.undo()
    assert read(process, path).count == 2
    process.close()
    with pytest.raises(ChildProcessError, match="was closed"):
        read(process, path)


def long(folder: Path) -> Path:
    """Next to no place on the disk, and 80 MB in memory, all of which is read: it has no statistics."""
    instants = pa.array([NOON], pa.timestamp("us")).take(pa.array([0] * 10_000_000, pa.int8()))
    table = pa.table(dict.fromkeys(NAMES, instants))
    pq.write_table(table, folder / "long.parquet", write_statistics=False, row_group_size=len(instants))
    return folder / "long.parquet"


def test_a_file_that_takes_too_much_time_is_unreadable(tmp_path: Path) -> None:
    process = ParquetProcess(processor_s=0.001)
    with pytest.raises(UnreadableFile) as raised:
        read(process, long(tmp_path))
    assert raised.value.reason == "reading it took more than 0.001 s of processor time"
    process.close()


def test_a_file_that_takes_too_much_memory_is_unreadable(process: ParquetProcess, tmp_path: Path) -> None:
    path = long(tmp_path)
    small = ParquetProcess(memory_bytes=40 << 20)
    with pytest.raises(UnreadableFile) as raised:
        read(small, path)
    small.close()
    assert "malloc" in raised.value.reason
    assert read(process, path) == FileRecords(10_000_000, NOON, NOON)


def test_randomly_damaged_files_are_read_or_unreadable(process: ParquetProcess, tmp_path: Path) -> None:
    outcomes = set()
    for path in write_files(tmp_path, "parquet", range(200)):
        try:
            outcomes.add(type(read(process, path)))
        except UnreadableFile as error:
            outcomes.add(type(error))
    assert outcomes == {FileRecords, UnreadableFile}


def test_it_ends_with_whoever_asks_and_a_ctrl_c_does_not_reach_it(tmp_path: Path) -> None:
    program = (
        "import time; from freshline.landing.parquet_process import ParquetProcess; "
        "process = ParquetProcess(); print(process.pid, flush=True); time.sleep(600)"
    )
    asking = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with asking:
        try:
            assert asking.stdout is not None
            pid = int(asking.stdout.readline())
            assert os.getpgid(pid) != os.getpgid(asking.pid)
            assert state(pid) not in ("Z", "gone")
        finally:
            asking.kill()
    until(lambda: state(pid) in ("Z", "gone"))
