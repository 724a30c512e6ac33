"""A data file on its way into its tables, with its facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from freshline.kernel.tables.events import DataFile
from freshline.spark.loading.load import FileFacts


class FileToLoad(DataFile):
    """A data file that carries its facts through message, backlog and job to the track that loads it.

    To the kernel and its journal it is an ordinary data file. If a file is overwritten before it is loaded,
    the file watch replaces the facts as a whole: any thread may read them.
    """

    facts: FileFacts

    def __new__(cls, timestamp: int, name: str, facts: FileFacts) -> Self:
        file = super().__new__(cls, timestamp, name, facts.records)
        file.facts = facts
        return file


def files_to_load(files: Iterable[DataFile]) -> tuple[FileToLoad, ...]:
    """A live job's files, which all have facts."""
    found = []
    for file in files:
        assert isinstance(file, FileToLoad), f"{file} has no facts"
        found.append(file)
    return tuple(found)
