"""The Java process of Spark: an interrupted start leaves no process behind."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from freshline.base.signals import held

# The timeout of Spark's end: it informs the cluster and removes its files.
_ENDING_S: Final = 10.0


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
        raise
    finally:
        vars(java_gateway)["Popen"] = usual


def end_java() -> bool:
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
            process.wait(_ENDING_S)
        process.kill()
        process.wait()
        SparkContext._gateway = SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
    return True


def hush_lost_connections() -> None:
    """Silences Py4J's log of calls that Java's end interrupts; callers get the error in any case."""
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"
