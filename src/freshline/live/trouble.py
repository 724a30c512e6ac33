"""What to do about a job that failed: try again, or put its file aside."""

from __future__ import annotations

from dataclasses import dataclass

from freshline.definitions.duration import SECOND
from freshline.storage.delta import NullTimestamps

# A file that cannot be read after so many tries is put into quarantine.
ATTEMPTS_MAX = 3
_BACK_OFF_US = SECOND // 2
_BACK_OFF_US_MAX = 60 * SECOND
# What Spark says of data that does not fit its schema, as against a machine in trouble.
_DATA_CONDITIONS = (
    "FAILED_READ_FILE",
    "MALFORMED",
    "CAST_INVALID_INPUT",
    "CANNOT_READ",
    "CSV header",
    "PATH_NOT_FOUND",
)
_MACHINE_SIGNS = (
    "No space left",
    "Read-only file system",
    "executor lost",
    "ExecutorLostFailure",
    "Permission denied",
)


@dataclass(slots=True)
class Trouble:
    """The failures of one table since its last success."""

    attempts: int = 0
    reason: str = ""

    def retry_at(self, now: int) -> int:
        """When to try again: ever later, up to a minute."""
        return now + min(_BACK_OFF_US_MAX, _BACK_OFF_US << min(self.attempts - 1, 20))


def is_about_data(error: BaseException) -> bool:
    """Whether the file is at fault, and not the machine: only then does putting it aside help."""
    if isinstance(error, NullTimestamps):
        return True
    text = str(error)
    if any(sign in text for sign in _MACHINE_SIGNS):
        return False
    # By its words: a task's failure reaches Python as a job's, whatever it was.
    return any(sign in text for sign in _DATA_CONDITIONS)


def sentence(error: BaseException) -> str:
    """An error in a line, for people: of a Java stack trace the condition that Spark names."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):
        del lines[0]  # Py4J's opening; what went wrong in Java follows
    named = [line for line in lines if "[" in line and any(sign in line for sign in _DATA_CONDITIONS)]
    first = named[0][named[0].index("[") :] if named else lines[0] if lines else type(error).__name__
    return first[:300]
