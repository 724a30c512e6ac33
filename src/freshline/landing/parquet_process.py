"""Parquet files are read in a process of their own: a damaged one can end the process that reads it.

Arrow trusts what a file says of itself, and makes an abort of a few damaged bytes in a footer. The process
lives as long as it is asked, and is begun anew when it has died. It ends when its input does, so also when
the process that asks is killed.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final, TextIO

import pyarrow as pa

from freshline.landing.key_values import Comparison, KeyValues, NewestValue, Value, key_values, number
from freshline.landing.parquet_records import parquet_records, parquet_tables
from freshline.landing.records import FileRecords, UnreadableFile, first_line, is_of_the_machine
from freshline.landing.timestamps import instants_of
from freshline.sql.columns import Column

# What one file may take. Processor time, not time on the clock: a busy machine is no fault of the file.
PROCESSOR_S: Final = 60.0
# On the clock: whatever it waits for, the file is not to blame for it.
_WAIT_S: Final = 600.0
# Beyond what the process has when it begins.
MEMORY_BYTES: Final = 2 << 30
# The modules come from where ours do.
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from freshline.landing.parquet_process import serve; serve(float(sys.argv[1]), int(sys.argv[2]))"
)
_READY: Final = "ready\n"
# What damage makes of a process. By any other signal an operator ended it, or a machine short of memory did.
_CRASHES: Final = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


class ParquetProcess:
    """Reads one file at a time, whichever thread asks. It begins at once, to be warm when the first comes."""

    def __init__(self, processor_s: float = PROCESSOR_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._processor_s = processor_s
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._closed = False
        self._ready = False
        self._process: subprocess.Popen[str] | None = None
        with suppress(OSError):  # it is tried again when it is needed
            self._process = self._begin()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def read(self, path: Path, declared: Sequence[Column], timestamp: str | None) -> FileRecords:
        """As `parquet_records` does; an `OSError` says that the machine is in trouble, and not the file."""
        return FileRecords(*self._answered("records", path, declared, timestamp))

    def compare(self, path: Path, comparison: Comparison) -> KeyValues | None:
        """As `key_values` does."""
        found = self._answered("compare", path, comparison)
        if found is None:
            return None
        newest = {
            bytes.fromhex(key): NewestValue(at_us, number(value, comparison.value))
            for key, at_us, value in found["newest"]
        }
        return KeyValues(newest, found["odd"])

    def _answered(self, task: str, path: Path, *question: Any) -> Any:
        with self._lock:
            answer = self._ask(json.dumps([task, str(path), *question]))
        if "unreadable" in answer:
            raise UnreadableFile(answer["unreadable"])
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]), str(path))
        return answer["found"]

    def close(self) -> None:
        """Ends it, whatever it is doing."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            with self._lock, process:  # a caller that waited for an answer knows by now; closes its pipes
                self._process = None

    def _ask(self, question: str) -> dict[str, Any]:
        process = self._process
        if process is not None and process.poll() is not None:  # no call was waiting: it is begun anew
            with process:
                process = None
        if process is None:
            process = self._process = self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        answer = ""
        with suppress(BrokenPipeError):
            self._ready = self._ready or process.stdout.readline() == _READY
            if self._ready:
                process.stdin.write(question + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
        if not answer.endswith("\n"):
            raise self._ended(process)
        return json.loads(answer)  # type: ignore[no-any-return]

    def _begin(self) -> subprocess.Popen[str]:
        if self._closed:
            raise _trouble("was closed")
        self._ready = False
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self._processor_s), str(self._memory_bytes), *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # what Arrow says when it aborts is for its developers
            text=True,
            encoding="utf-8",
            start_new_session=True,  # a Ctrl-C is for us, not for it
        )

    def _ended(self, process: subprocess.Popen[str]) -> UnreadableFile | OSError:
        """What it means that it ended instead of answering."""
        self._process = None
        with process:  # closes its pipes and waits for its end
            pass
        code = process.returncode
        if self._ready and -code in _CRASHES:
            return UnreadableFile(f"it is damaged: reading it ended with {signal.Signals(-code).name}")
        if self._ready and -code == signal.SIGPROF:
            return UnreadableFile(f"reading it took more than {self._processor_s:g} s of processor time")
        return _trouble(f"ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}")


def _trouble(how: str) -> OSError:
    return ChildProcessError(errno.ECHILD, f"the process that reads Parquet files {how}")


def serve(processor_s: float, memory_bytes: int) -> None:
    """Answers questions from the standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # nothing else is an answer
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Each thread would claim its share of the memory, and so little work is done by one.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _limit_memory(memory_bytes)
    _say(answers, _READY)
    for question in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, processor_s)
        signal.setitimer(signal.ITIMER_REAL, _WAIT_S)
        answer = _answer(*json.loads(question))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        _say(answers, json.dumps(answer) + "\n")


def _say(answers: TextIO, line: str) -> None:
    answers.write(line)
    answers.flush()


def _limit_memory(memory_bytes: int) -> None:
    """A footer may ask for any amount."""
    with suppress(OSError, ValueError):  # not every system tells, or has such a limit
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))


def _answer(task: str, path: str, *question: Any) -> dict[str, Any]:
    try:
        return {"found": _TASKS[task](Path(path), *question)}
    except UnreadableFile as error:
        return {"unreadable": error.reason}
    except OSError as error:
        return {"errno": error.errno} if is_of_the_machine(error) else {"unreadable": first_line(error)}
    except Exception as error:  # there is no telling what damage leads to
        return {"unreadable": first_line(error)}


def _records(path: Path, declared: list[list[Any]], timestamp: str | None) -> tuple[Any, ...]:
    return astuple(parquet_records(path, [Column(*column) for column in declared], timestamp))


def _compared(path: Path, columns: list[list[Any]]) -> dict[str, Any] | None:
    comparison = Comparison(*(Column(*column) for column in columns))
    found = key_values(parquet_tables(path, comparison.names), instants_of, comparison)
    if found is None:
        return None
    # As texts: JSON has neither decimals nor integers of more than 53 bits that everybody reads alike.
    newest = [(key.hex(), each.at_us, _text(each.value)) for key, each in found.newest.items()]
    return {"newest": newest, "odd": found.odd}


def _text(value: Value | None) -> str | None:
    return None if value is None else str(value)


_TASKS: Final[Mapping[str, Callable[..., Any]]] = {"records": _records, "compare": _compared}
