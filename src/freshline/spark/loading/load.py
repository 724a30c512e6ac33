"""What Spark is to load into a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

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


class LoadFile(Protocol):
    """A file of a load. Another thread may replace its facts as a whole: a load reads them once."""

    @property
    def timestamp(self) -> int: ...

    @property
    def facts(self) -> FileFacts: ...


@dataclass(frozen=True, slots=True)
class Jump:
    """How far a load may take its table beyond `Load.to`, where no source has a row."""

    to: int  # at most
    near: int  # where the next row is found up to here, it does not matter which row it is
    reached: Callable[[int | None], int]  # by the sources' next row (None: there is none), the freshness


@dataclass(frozen=True, slots=True)
class Load:
    """One load: (`after`, `to`] into a table."""

    table: str
    number: int  # of the job that it is part of
    after: int  # the table's freshness F
    to: int  # its new freshness NF
    files: tuple[LoadFile, ...] = ()  # oldest first; none for a derived table
    is_first: bool = False  # the table has loaded nothing yet: there is no lower limit
    jump: Jump | None = None
    start: int = 0  # when its job was started
    came_at: int | None = None  # of a step: when the burst came to its source; the commit notes it

    @property
    def length_us(self) -> int:
        """How much time it covers; 0 of a first load, which has no lower limit."""
        return 0 if self.is_first else self.to - self.after

    def only(self, files: Sequence[LoadFile]) -> Load:
        """The load with only these of its files."""
        to = max(self.after, *(file.timestamp for file in files))
        return replace(self, files=tuple(files), to=to, jump=None)
