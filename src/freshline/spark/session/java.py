"""The Java process that Spark runs in: an interrupted start leaves none behind."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from freshline.base.signals import held

# How long a Spark that was told to end may take: to tell a cluster, and to remove its files.
_ENDING_S: Final = 10.0


@contextmanager
def no_java_left_behind() -> Iterator[None]:
    """Spark is started in here, or used. If that is interrupted, its Java process ends.

    PySpark does not tell of the process until it answers. Interrupted before, it removes the folder in which
    Java is to leave its address: Java then fails to, and waits for ever.
    """
    begun: list[subprocess.Popen[bytes]] = []

    class Known(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            with held():  # or there would be a process that is not known
                super().__init__(*arguments, **options)
                begun.append(self)

    usual = vars(java_gateway)["Popen"]
    vars(java_gateway)["Popen"] = Known
    try:
        yield
    except Exception:
        raise  # not interrupted: Java ends with this process, or is used again
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
    """Ends the Java process, and with it whatever Spark was about to do. The next session starts another.

    False: it is not there, or not ours to end.
    """
    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    hush_lost_connections()
    with held():
        if process.stdin is not None:
            process.stdin.close()  # for Java a sign that we are gone
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING_S)
        process.kill()
        process.wait()
        SparkContext._gateway = SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
    return True


def hush_lost_connections() -> None:
    """Py4J logs each call that Java's end cuts short, with its traceback; callers get the error anyhow."""
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"
