"""The meaning of Spark's errors, and sentences for users."""

from __future__ import annotations

import re
import subprocess

from pyspark import errors
from pyspark.sql import SparkSession

from freshline.base.disk import full_disk
from freshline.spark.loading.invalid_text import NO_TEXT

# Spark's errors for a row that a query cannot compute. A failing machine raises none of these.
_ROW_ERRORS = (
    errors.ArithmeticException,
    errors.ArrayIndexOutOfBoundsException,
    errors.DateTimeException,
    errors.IllegalArgumentException,
    errors.NumberFormatException,
    errors.SparkRuntimeException,
)
# The same by text, since a task's failure often reaches Python as its job's: the SQLSTATE classes for
# cardinality, data, constraints, limits and errors that a query raises; and exceptions of Java's functions.
_ROW_WORDS = re.compile(
    r"SQLSTATE: (?:2[123]|54|P0)"
    r"|java\.(?:lang\.(?:Arithmetic|NumberFormat)|time\.[\w.]+|util\.(?:regex\.PatternSyntax|\w*Format\w*))Exception"
)
# The time until a process that closed its connections shows as ended.
_ENDING_S = 5.0
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .+")
_STATE = re.compile(r" *SQLSTATE: \w{5}$")
_CAUSE = "Caused by: "
# The opening of Spark's message about an unreadable file; the cause follows.
_UNREAD = "[FAILED_READ_FILE"
_OPENING = re.compile(r"^\[\S+\] Encountered error while reading file \S+ *(?:SQLSTATE: \w{5})?")
_JAVA = re.compile(r"^(?:[\w$]+\.)+\w+: ")
_RAISED = re.compile(
    rf"^\[USER_RAISED_EXCEPTION\] (?=column .* has {NO_TEXT})"
)  # from `spark.loading.invalid_text`
SENTENCE_MAX = 300


class SparkEnded(Exception):  # noqa: N818  (it is what happened)
    """Spark has ended: no job can run any more, and a retry does not help."""

    def __init__(self, how: str) -> None:
        super().__init__(f"Spark has ended: {how}")


def spark_ended(session: SparkSession) -> SparkEnded | None:
    """The reason if Spark has ended, else None. A cluster that lost a worker goes on with another."""
    context = session.sparkContext
    if context._jsc is None:
        return SparkEnded("it was stopped")
    process: subprocess.Popen[bytes] | None = getattr(context._gateway, "proc", None)  # if started here
    try:
        stopped = context._jsc.sc().isStopped()
    # A call can fail in many ways, and the caller, a track, must report its job's end in all cases.
    except Exception as error:
        if process is None:
            return SparkEnded(f"it does not answer: {sentence(error)}")
        try:
            code = process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return None  # the process is there and may answer again
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return SparkEnded(f"its Java process {how}")
    return SparkEnded("its application was stopped") if stopped else None


def is_of_a_row(error: BaseException) -> bool:
    """Whether a query failed because of some row, not because of the machine.

    It is for queries that a client waits for. For a data file it only says that a trial is worth its time now
    (`live.tables.file_trial`): no list of errors covers everything that a file can cause.
    """
    # Only Spark's own errors have a condition: Hadoop's of these types are about hosts and settings.
    if isinstance(error, _ROW_ERRORS) and error.getCondition() is not None:
        return True
    return _ROW_WORDS.search(str(error)) is not None


def sentence(error: BaseException) -> str:
    """An error as one line for users: of a Java stack trace, Spark's condition or else the cause.

    For an unreadable file the cause says what is wrong with it.
    """
    full = full_disk(error)
    if full is not None:
        return full
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # Py4J's opening; the Java error follows
    named = next((found[0] for line in lines if (found := _CONDITION.search(line))), None)
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    if named is not None and named.startswith(_UNREAD):
        said = _OPENING.sub("", named).strip()
        named = _JAVA.sub("", causes[-1]) if causes and not said else said or named
    first = named or (causes[-1] if causes else lines[0] if lines else type(error).__name__)
    return _STATE.sub("", _RAISED.sub("", first))[:SENTENCE_MAX]


def first_line(error: BaseException) -> str:
    """Spark's message for users about SQL that it rejects."""
    return str(error).splitlines()[0].rstrip(".")
