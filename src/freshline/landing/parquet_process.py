"""Reads Parquet files in a process of its own, because a damaged file can crash the process that reads it.

Arrow trusts the contents of a file, and aborts on a few damaged bytes in a footer. The process lives as long
as it is needed, and is restarted when it has died. It ends when its input ends, so also when its parent
process is killed.
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

# The limit for one file. Processor time, not wall-clock time: a busy machine is not the file's fault.
PROCESSOR_S: Final = 60.0
# Wall-clock time: whatever causes such a wait, it is not the file.
_WAIT_S: Final = 600.0
# In addition to the memory that the process has at its start.
MEMORY_BYTES: Final = 2 << 30
# The process imports modules from the same places as its parent.
_PROGRAM: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from freshline.landing.parquet_process import serve; serve(float(sys.argv[1]), int(sys.argv[2]))"
)
_READY: Final = "ready\n"
# The signals that damage causes. Any other signal comes from a user, or from a machine short of memory.
_CRASHES: Final = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL)


class ParquetProcess:
    """Reads one file at a time, for any thread. It starts at once, to be ready for the first file."""

    def __init__(self, processor_s: float = PROCESSOR_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._processor_s = processor_s
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._closed = False
        self._ready = False
        self._process: subprocess.Popen[str] | None = None
        with suppress(OSError):  # the first read tries again
            self._process = self._begin()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def read(self, path: Path, declared: Sequence[Column], timestamp: str | None) -> FileRecords:
        """Like `parquet_records`; an `OSError` means a fault of the machine, not of the file."""
        return FileRecords(*self._answered("records", path, declared, timestamp))

    def compare(self, path: Path, comparison: Comparison) -> KeyValues | None:
        """Like `key_values`."""
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
        """Kills the process, whatever it is doing."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()
            with self._lock, process:  # a waiting thread has seen the end by now; closes the pipes
                self._process = None

    def _ask(self, question: str) -> dict[str, Any]:
        process = self._process
        if process is not None and process.poll() is not None:  # it died between two reads: start another
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
            stderr=subprocess.DEVNULL,  # Arrow's abort messages are for its developers
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the parent process only
        )

    def _ended(self, process: subprocess.Popen[str]) -> UnreadableFile | OSError:
        """The error for a process that ended without an answer."""
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
    """Answers requests from standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # so that nothing else writes to the answers
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Each thread would reserve memory, and one is enough for so little work.
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
    """Limits the memory, because a damaged footer may request any amount."""
    with suppress(OSError, ValueError):  # some systems do not report the size, or have no such limit
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
    except Exception as error:  # damage can lead to any exception
        return {"unreadable": first_line(error)}


def _records(path: Path, declared: list[list[Any]], timestamp: str | None) -> tuple[Any, ...]:
    return astuple(parquet_records(path, [Column(*column) for column in declared], timestamp))


def _compared(path: Path, columns: list[list[Any]]) -> dict[str, Any] | None:
    comparison = Comparison(*(Column(*column) for column in columns))
    found = key_values(parquet_tables(path, comparison.names), instants_of, comparison)
    if found is None:
        return None
    # As texts: JSON has no decimals, and readers disagree about integers of more than 53 bits.
    newest = [(key.hex(), each.at_us, _text(each.value)) for key, each in found.newest.items()]
    return {"newest": newest, "odd": found.odd}


def _text(value: Value | None) -> str | None:
    return None if value is None else str(value)


_TASKS: Final[Mapping[str, Callable[..., Any]]] = {"records": _records, "compare": _compared}
