"""What the processes of a command do, as the system tells it (Linux)."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from freshline.base.processes import process_start
from patience import PATIENCE_S


class Command:
    """A `freshline` in a process of its own, and all processes that were ever seen below it."""

    def __init__(self, *arguments: str) -> None:
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 (a pipe would end with the last process only)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "freshline", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=self.output,
            start_new_session=True,
        )
        self.seen: dict[int, str] = {}

    def look(self) -> list[int]:
        """Its processes now."""
        found = [self.process.pid]
        for pid in found:
            found += _children(pid)
        for pid in found:
            started = process_start(pid)
            if started is not None:
                self.seen.setdefault(pid, started)
        return found

    def wait_until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not reached():
            self.look()
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline
            time.sleep(0.01)  # some moments are as short
        self.look()

    def end(self, *signals: signal.Signals) -> tuple[int, str]:
        """Sends them one after the other; its exit code, and what it said on standard error."""
        for number in signals:
            os.kill(self.process.pid, number)
            time.sleep(0.1)
            if self.process.poll() is None:
                self.look()
        return self.process.wait(PATIENCE_S), self.said()

    def said(self) -> str:
        """What it wrote on standard error."""
        self.output.seek(0)
        return self.output.read().decode()

    def left(self) -> list[int]:
        """Which of its processes are there after a while."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            alive = [pid for pid, started in self.seen.items() if process_start(pid) == started]
            if not alive or time.monotonic() > deadline:
                return alive
            time.sleep(0.02)

    def starts_java(self) -> bool:
        """Whether the script has been started that becomes Spark's Java process."""
        return any("spark-submit" in _command_line(pid) for pid in self.look()[1:])

    def has_java(self) -> bool:
        """Whether that is one by now; some seconds later it answers."""
        return bool(self.javas())

    def javas(self) -> list[int]:
        return spark_javas(self.process.pid)

    def hears(self, number: signal.Signals) -> bool:
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


@contextmanager
def command(*arguments: str) -> Iterator[Command]:
    """Nothing of it is left after the block, whatever a test found."""
    begun = Command(*arguments)
    try:
        yield begun
    finally:
        if begun.process.poll() is None:
            begun.process.kill()
            begun.process.wait()
        for pid, started in begun.seen.items():
            if process_start(pid) == started:
                os.kill(pid, signal.SIGKILL)
        begun.output.close()


def spark_javas(pid: int) -> list[int]:
    """The Java processes of Spark among the children of a process."""
    lines = {child: _command_line(child).split("\0") for child in _children(pid)}
    spark = "org.apache.spark.deploy.SparkSubmit"
    return [child for child, line in lines.items() if line[0].endswith("java") and spark in line]


def listening(pids: list[int]) -> list[str]:
    """The addresses at which these processes listen, in hexadecimal digits as the kernel has them."""
    inodes = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(descriptor)
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pids[0]}/net/{table}").read_text("utf-8").splitlines()[1:]
    ]
    return [fields[1].partition(":")[0] for fields in lines if fields[3] == "0A" and fields[9] in inodes]


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):  # it may end at any moment
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text("utf-8").split())
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
