"""What to do about a job that failed: try again, or put its file aside."""

from __future__ import annotations

import errno
import os
import re
import subprocess
from dataclasses import dataclass

from pyspark import errors
from pyspark.sql import SparkSession

from freshline.definitions.duration import SECOND
from freshline.storage.delta import NullTimestamps
from freshline.storage.extent import OtherRecords

# A file that cannot be read after so many tries is put into quarantine.
ATTEMPTS_MAX = 3
_BACK_OFF_US = SECOND // 2
_BACK_OFF_US_MAX = 60 * SECOND
# What Spark makes of a row that a query cannot compute. A machine in trouble is none of these.
_ROW_ERRORS = (
    errors.ArithmeticException,
    errors.ArrayIndexOutOfBoundsException,
    errors.DateTimeException,
    errors.IllegalArgumentException,
    errors.NumberFormatException,
    errors.SparkRuntimeException,
)
# The same by its words, for a task's failure often reaches Python as its job's: the classes of SQLSTATE for
# cardinality, data, constraints, limits and what a query raises itself; and what Java's functions throw.
_ROW_WORDS = re.compile(
    r"SQLSTATE: (?:2[123]|54|P0)"
    r"|java\.(?:lang\.(?:Arithmetic|NumberFormat)|time\.[\w.]+|util\.(?:regex\.PatternSyntax|\w*Format\w*))Exception"
)
# What Spark says of a file that it cannot read: corrupt, of another schema or gone, or out of reach.
_FILE_WORDS = ("FAILED_READ_FILE", "MALFORMED_CSV_RECORD", "PATH_NOT_FOUND")
_MACHINE_WORDS = (
    "executor lost",
    "ExecutorLostFailure",
    "OutOfMemoryError",
    *map(os.strerror, (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)),
    *map(os.strerror, (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN)),
    *map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.ENOMEM)),
)
# A process whose connections are gone is seen to have ended a moment later.
_ENDING_S = 5.0
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
_CAUSE = "Caused by: "


class SparkEnded(Exception):  # noqa: N818  (it is what happened)
    """Spark is gone for good: no job can run any more, and no other attempt helps."""

    def __init__(self, how: str) -> None:
        super().__init__(f"Spark has ended: {how}")


@dataclass(slots=True)
class Trouble:
    """The failures of one table since its last success."""

    attempts: int = 0
    reason: str = ""

    def retry_at(self, now: int) -> int:
        """When to try again: ever later, up to a minute."""
        return now + min(_BACK_OFF_US_MAX, _BACK_OFF_US << min(self.attempts - 1, 20))


def spark_ended(session: SparkSession) -> SparkEnded | None:
    """What became of Spark, if it is gone. A cluster that has lost a worker is not: it gets another."""
    context = session.sparkContext
    if context._jsc is None:
        return SparkEnded("it was stopped")
    process: subprocess.Popen[bytes] | None = getattr(context._gateway, "proc", None)  # where Python began it
    try:
        stopped = context._jsc.sc().isStopped()
    except Exception as error:  # nobody answers
        if process is None:
            return SparkEnded(f"it does not answer: {sentence(error)}")
        try:
            code = process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return None  # it is there, and may answer again
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return SparkEnded(f"its Java process {how}")
    return SparkEnded("its application was stopped") if stopped else None


def is_about_data(error: BaseException) -> bool:
    """Whether a file is at fault, and not the machine: only then does putting it aside help."""
    if isinstance(error, NullTimestamps | OtherRecords) or _is_of_a_row(error):
        return True
    text = str(error)
    # A value may read like a machine's trouble, so what Spark says of rows comes first.
    if _ROW_WORDS.search(text):
        return True
    return any(words in text for words in _FILE_WORDS) and not any(words in text for words in _MACHINE_WORDS)


def _is_of_a_row(error: BaseException) -> bool:
    # Only Spark's own have a condition: Hadoop's of these types are about hosts and settings.
    return isinstance(error, _ROW_ERRORS) and error.getCondition() is not None


def sentence(error: BaseException) -> str:
    """An error in a line, for people: of a Java stack trace the condition that Spark names, or the cause."""
    text = str(error)
    named = _CONDITION.search(text)
    if named:
        return named[0][:300]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # Py4J's opening; what went wrong in Java follows
    causes = [line for line in lines if line.startswith(_CAUSE)]
    first = causes[-1].removeprefix(_CAUSE) if causes else lines[0] if lines else type(error).__name__
    return first[:300]
