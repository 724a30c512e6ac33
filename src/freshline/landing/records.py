"""The facts about the records of a data file that was found."""

from __future__ import annotations

import errno
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileRecords:
    """The number of records in a file, as Spark will read it, and their oldest and newest time.

    Times are in microseconds since the Unix epoch; they are None without records.
    """

    count: int
    oldest_us: int | None  # also None if it was not read
    newest_us: int | None


class UnreadableFile(Exception):  # noqa: N818  (it describes the file)
    """A data file that is corrupt, or that differs from its feed's declaration."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def is_of_the_machine(error: OSError) -> bool:
    """Whether the error is a fault of the machine, not of the file: a retry may succeed.

    Arrow reports damaged compression as an OSError without a number, and an invalid offset as EINVAL.
    """
    return error.errno not in (None, errno.EINVAL)


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
