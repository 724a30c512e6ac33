"""A data file on its way into its tables, with what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from freshline.kernel.tables.events import DataFile
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.last_values import FileOffer


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was found in a file: what its commit will note, and what is known of its records."""

    consumed: ConsumedFile
    records: int  # how many it has
    oldest: int | None  # their timestamps, where they are known
    newest: int | None
    offers: Mapping[str, FileOffer] = field(default_factory=dict)  # by table with `discard`


class FileToLoad(DataFile):
    """A data file that carries its facts: through message, backlog and job, to whoever loads it.

    To the kernel and its journal it is a data file like any other. Facts are replaced as a whole, by the
    thread that finds files, where a file is overwritten before it is loaded: any thread may read them.
    """

    facts: FileFacts

    def __new__(cls, timestamp: int, name: str, facts: FileFacts) -> Self:
        file = super().__new__(cls, timestamp, name, facts.records)
        file.facts = facts
        return file


def facts_of(files: Iterable[DataFile]) -> list[FileFacts]:
    """What is known now of a live job's files."""
    facts = []
    for file in files:
        assert isinstance(file, FileToLoad), f"nobody has found {file}"
        facts.append(file.facts)
    return facts
