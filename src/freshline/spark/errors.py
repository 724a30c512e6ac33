"""What Spark's errors mean, and how they are told."""

from __future__ import annotations

import re
import subprocess

from pyspark import errors
from pyspark.sql import SparkSession

from freshline.base.disk import full_disk
from freshline.spark.loading.invalid_text import NO_TEXT

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
# A process whose connections are gone is seen to have ended a moment later.
_ENDING_S = 5.0
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
_STATE = re.compile(r" *SQLSTATE: \w{5}$")
_CAUSE = "Caused by: "
# What Spark says of any file that it cannot read, before it says why.
_UNREAD = "[FAILED_READ_FILE"
_OPENING = re.compile(r"^\[\S+\] Encountered error while reading file \S+ *(?:SQLSTATE: \w{5})?")
_JAVA = re.compile(r"^(?:[\w$]+\.)+\w+: ")
_RAISED = re.compile(
    rf"^\[USER_RAISED_EXCEPTION\] (?=column .* has {NO_TEXT})"
)  # by us, in `spark.loading.invalid_text`
SENTENCE_MAX = 300


class SparkEnded(Exception):  # noqa: N818  (it is what happened)
    """Spark is gone for good: no job can run any more, and no other attempt helps."""

    def __init__(self, how: str) -> None:
        super().__init__(f"Spark has ended: {how}")


def spark_ended(session: SparkSession) -> SparkEnded | None:
    """What became of Spark, if it is gone. A cluster that has lost a worker is not: it gets another."""
    context = session.sparkContext
    if context._jsc is None:
        return SparkEnded("it was stopped")
    process: subprocess.Popen[bytes] | None = getattr(context._gateway, "proc", None)  # where Python began it
    try:
        stopped = context._jsc.sc().isStopped()
    # There are many ways not to answer. A track asks at its boundary: its job's end must be told anyhow.
    except Exception as error:
        if process is None:
            return SparkEnded(f"it does not answer: {sentence(error)}")
        try:
            code = process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return None  # it is there, and may answer again
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return SparkEnded(f"its Java process {how}")
    return SparkEnded("its application was stopped") if stopped else None


def is_of_a_row(error: BaseException) -> bool:
    """Whether a query fails by what it computes of some row, and not by the machine.

    It is asked of a query that a client waits for. Whether a data file is to blame is found by trying it
    (`live.tables.file_trial`): what a file can do to Spark has no end of names.
    """
    # Only Spark's own have a condition: Hadoop's of these types are about hosts and settings.
    if isinstance(error, _ROW_ERRORS) and error.getCondition() is not None:
        return True
    return _ROW_WORDS.search(str(error)) is not None


def sentence(error: BaseException) -> str:
    """An error in a line, for people: of a Java stack trace the condition that Spark names, or the cause.

    Of a file that cannot be read the cause says what is wrong with it.
    """
    full = full_disk(error)
    if full is not None:
        return full
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # Py4J's opening; what went wrong in Java follows
    named = next((found[0] for line in lines if (found := _CONDITION.search(line))), None)
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    if named is not None and named.startswith(_UNREAD):
        said = _OPENING.sub("", named).strip()
        named = _JAVA.sub("", causes[-1]) if causes and not said else said or named
    first = named or (causes[-1] if causes else lines[0] if lines else type(error).__name__)
    return _STATE.sub("", _RAISED.sub("", first))[:SENTENCE_MAX]


def first_line(error: BaseException) -> str:
    """What Spark says of SQL that it cannot take, in the words that it has for users."""
    return str(error).splitlines()[0].rstrip(".")
