"""The Java process of Spark: it ends with this process, however that ends."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from freshline.base.signals import before_a_forced_end, held

# The timeout of Spark's end: it informs the cluster and removes its files.
_ENDING_S: Final = 5.0
# The guard imports modules from the same places as its parent.
_GUARD: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from freshline.spark.session.java_guard import guard; guard(int(sys.argv[1]))"
)
_guards: list[subprocess.Popen[bytes]] = []


@contextmanager
def no_java_left_behind() -> Iterator[None]:
    """If the start or use of Spark in this context is interrupted, its Java process ends.

    PySpark does not reveal the process until it answers. If PySpark is interrupted before, it removes the
    folder in which Java should leave its address: Java then waits for ever.
    """
    begun: list[subprocess.Popen[bytes]] = []

    class Known(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            with held():  # or the process would stay unknown
                super().__init__(*arguments, **options)
                begun.append(self)
                before_a_forced_end(self.kill)
                _start_guard(self.pid)

    usual = vars(java_gateway)["Popen"]
    vars(java_gateway)["Popen"] = Known
    try:
        yield
    except Exception:
        raise  # not interrupted: Java ends with this process or is used again
    except BaseException:
        with held():
            if not end_java():
                for process in begun:
                    process.kill()
                    process.wait()
                _end_guards()
        raise
    finally:
        vars(java_gateway)["Popen"] = usual


def _start_guard(java: int) -> None:
    """Starts a process that ends Java if this process is killed. It ends when its input does.

    PySpark's Java process exits by itself when its input ends. But Java's exit (`Shutdown.halt`) waits until
    all its threads pause: beside an analysis that fills the memory it still waited after 75 s.
    """
    with suppress(OSError):  # without a guard PySpark's own way remains
        command = [sys.executable, "-c", _GUARD, str(java), *sys.path]
        # In a session of its own: neither the terminal's signals nor those to a group of processes reach it.
        guard = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
        )
        _guards.append(guard)


def _end_guards() -> None:
    while _guards:
        guard = _guards.pop()
        if guard.stdin is not None:
            guard.stdin.close()
        guard.wait()


def end_java(within_s: float = _ENDING_S) -> bool:
    """Ends the Java process and all of Spark's work. The next session starts another.

    False: there is no process, or another program started it.
    """
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    hush_lost_connections()
    with held():
        if process.stdin is not None:
            process.stdin.close()  # tells Java that this process is gone
        with suppress(subprocess.TimeoutExpired):
            process.wait(within_s)
        process.kill()
        process.wait()
        _end_guards()
        SparkContext._gateway = SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
    return True


def hush_lost_connections() -> None:
    """Silences Py4J's log of calls that Java's end interrupts; callers get the error in any case."""
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"
