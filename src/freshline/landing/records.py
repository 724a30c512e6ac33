"""What is known of a data file's records once it has been found."""

from __future__ import annotations

import errno
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileRecords:
    """How many records a file has, as Spark will read it, and from when to when they are.

    Times are in microseconds since the Unix epoch, and None where there are no records.
    """

    count: int
    oldest_us: int | None  # None too where it was not looked for
    newest_us: int | None


class UnreadableFile(Exception):  # noqa: N818  (it says what the file is)
    """A data file that is corrupt, or not what its feed declares."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def is_of_the_machine(error: OSError) -> bool:
    """Whether the machine is in trouble, and not the file: another look may find it readable.

    Arrow reports damaged compression as an OSError without a number, and a place that no file has as EINVAL.
    """
    return error.errno not in (None, errno.EINVAL)


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
