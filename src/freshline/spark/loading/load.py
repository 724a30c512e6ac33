"""The description of a load: the range and the files that Spark loads into a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Protocol

from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.last_values import FileOffer

_NO_OFFERS: Final[Mapping[str, FileOffer]] = MappingProxyType({})  # one for all files of a backlog


@dataclass(frozen=True, slots=True)
class FileFacts:
    """The facts about a file: its entry in the commit and the extent of its records."""

    consumed: ConsumedFile
    records: int
    oldest: int | None  # the records' timestamps, if known
    newest: int | None
    offers: Mapping[str, FileOffer] = field(default_factory=lambda: _NO_OFFERS)  # by table with `discard`


class LoadFile(Protocol):
    """A file of a load. Another thread may replace its facts as a whole: a load reads them once."""

    @property
    def timestamp(self) -> int: ...

    @property
    def facts(self) -> FileFacts: ...


@dataclass(frozen=True, slots=True)
class Jump:
    """How far a load may move its table beyond `Load.to` if no source has a row there."""

    to: int  # the limit
    near: int  # if the next row is up to here, any such row will do
    reached: Callable[[int | None], int]  # the freshness by the sources' next row (None: there is none)


@dataclass(frozen=True, slots=True)
class Load:
    """One load: (`after`, `to`] into a table."""

    table: str
    number: int  # of its job
    after: int  # the table's freshness F
    to: int  # its new freshness NF
    files: tuple[LoadFile, ...] = ()  # oldest first; none for a derived table
    is_first: bool = False  # the table is empty: there is no lower limit
    jump: Jump | None = None
    start: int = 0  # the start of its job
    came_at: int | None = None  # of a step: when its burst came to the source; the commit has it
    recovery: bool = False  # of a step: it has a backlog; the commit has it

    @property
    def length_us(self) -> int:
        """The length of its range; 0 for a first load, which has no lower limit."""
        return 0 if self.is_first else self.to - self.after

    def only(self, files: Sequence[LoadFile]) -> Load:
        """The load with only these of its files."""
        to = max(self.after, *(file.timestamp for file in files))
        return replace(self, files=tuple(files), to=to, jump=None)
