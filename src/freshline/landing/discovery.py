"""Finds the data files that a feed delivers among the files below its landing directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from freshline.definitions.sections.feeds import Feed
from freshline.landing.digest import content_digest
from freshline.landing.key_values import KeyValues
from freshline.landing.parquet_process import ParquetProcess
from freshline.landing.record_reader import RecordReader
from freshline.landing.records import UnreadableFile, is_of_the_machine
from freshline.landing.scanner import Scanner, SeenFile

_OPENING_BYTES: Final = 256 << 10  # opening a file takes as long as reading this many bytes
# A larger file is always loaded: other feeds would wait while its values are read.
_COMPARED_BYTES: Final = 64 << 20
_NO_VALUES: Final[Mapping[str, KeyValues | None]] = MappingProxyType({})  # one for all files of a backlog


class KnownFile(Protocol):
    """A file as it was when it was loaded."""

    @property
    def size(self) -> int: ...
    @property
    def mtime_ns(self) -> int: ...
    @property
    def digest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A data file to be loaded."""

    feed: str
    name: str
    size: int
    mtime_ns: int
    digest: str
    arrival_us: int  # when it was found
    records: int  # how many it has
    oldest_us: int | None  # the timestamp of its oldest record, if known
    newest_us: int | None  # the timestamp of its newest record; None for a file without records
    timestamp_us: int | None  # the effective timestamp: minus the lateness, and cut if it is too far ahead
    cut: bool
    # For each table with `discard`: the file's newest values, None if they are unknown.
    values: Mapping[str, KeyValues | None] = field(default_factory=lambda: _NO_VALUES)


@dataclass(frozen=True, slots=True)
class RepeatedFile:
    """A file that still exists or came back with the content that was loaded: there is nothing to load."""

    feed: str
    name: str
    size: int  # as it was seen; another file may replace it
    mtime_ns: int
    digest: str


@dataclass(frozen=True, slots=True)
class NameClash:
    """A file with the name of a loaded file, but with other content."""

    feed: str
    name: str
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A file that is corrupt, or that differs from its feed's declaration."""

    feed: str
    name: str
    path: Path
    reason: str


_Verdict = FoundFile | RepeatedFile | NameClash | RejectedFile


@dataclass(slots=True)
class DiscoveredFiles:
    """The result of one scan; a file is reported once, until it changes or is removed and comes back."""

    landed: list[FoundFile] = field(default_factory=list)  # by timestamp, then by name
    changed: list[FoundFile] = field(default_factory=list)  # landed, not loaded yet, now with other content
    repeated: list[RepeatedFile] = field(default_factory=list)
    clashes: list[NameClash] = field(default_factory=list)
    unreadable: list[RejectedFile] = field(default_factory=list)
    missing: bool = False  # the landing directory does not exist
    troubles: Mapping[str, str] = field(default_factory=dict)  # what could not be read, and why
    link: str | None = None  # the first symbolic link that was ever seen; links are not followed
    left: int = 0  # files of this round still to examine; nothing is reported before it is 0


@dataclass(slots=True)
class _Open:
    """A file that has not been reported yet."""

    found: SeenFile
    scans: int = 0  # for how many scans it has not changed


class Discovery:
    """Finds the files of one feed. `known` gives the file that was loaded under a name, or None."""

    def __init__(
        self,
        feed: Feed,
        root: Path,
        known: Callable[[str], KnownFile | None],
        attempts: int = 3,
        full_every: int = 60,
        process: ParquetProcess | None = None,
        compared: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        landing = feed.landing
        assert feed.period_us is not None
        self._feed = feed
        self._reader = RecordReader(landing, process)
        self._known = known
        self._compared = compared or {}  # by table: the columns of its keys and values
        self._attempts = attempts
        self._scanner = Scanner(root, full_every)
        self._open: dict[str, _Open] = {}
        self._round: list[str] = []  # the names still to examine before anything is reported
        self._result = DiscoveredFiles()  # after an error, the next scan continues with this
        self._troubles: dict[str, str] = {}  # by reason: the first file of the round that could not be read
        self._link_told = False
        self._digests: dict[str, str] = {}  # of files that have landed, are not loaded and still exist
        self._ahead_us = feed.period_us if landing.ahead_us is None else landing.ahead_us

    def scan(self, now_us: int, bytes_max: float = inf) -> DiscoveredFiles:
        """What is new at this instant (microseconds since the Unix epoch).

        A scan examines at least one file, and more up to `bytes_max`; the next scan continues. Files that
        arrived together are reported together, in the order of their timestamps. Otherwise older files could
        be reported last, and count as late.
        """
        scanner = self._scanner
        if not self._round:
            self._look(now_us)
        while self._round and bytes_max > 0:
            candidate = self._open.get(self._round[-1])
            if candidate is not None:
                bytes_max -= self._examine(candidate, now_us)
            self._round.pop()  # only now, so that the next scan repeats a file after an error
        if self._round:
            return DiscoveredFiles(missing=scanner.missing, troubles=scanner.troubles, left=len(self._round))
        result, self._result = self._result, DiscoveredFiles()
        result.missing = scanner.missing
        result.troubles = {name: reason for reason, name in self._troubles.items()} | scanner.troubles
        result.link, self._link_told = (None if self._link_told else scanner.link), bool(scanner.link)
        result.landed.sort(key=_order)
        return result

    def look_again(self, name: str) -> None:
        """Treats a file, if it exists, as one that has just arrived."""
        self._digests.pop(name, None)
        self._open[name] = _Open(SeenFile(name, str(self._scanner.root / name), -1, -1))

    def loaded(self, name: str) -> None:
        """Forgets a file that was loaded: from then on it is compared with `known`."""
        if name in self._digests and self._known(name) is not None:
            del self._digests[name]
            if not self._digests:
                self._digests.clear()  # an emptied dictionary keeps the memory of its largest size

    def _look(self, now_us: int) -> None:
        """Starts a round: all files that have not been reported yet, in the order of their names."""
        scanner = self._scanner
        scanner.scan(now_us)
        self._troubles = {}
        for name in scanner.gone:
            self._open.pop(name, None)
            self._digests.pop(name, None)
        self._open.update((found.name, _Open(found)) for found in scanner.fresh)
        self._round = sorted(self._open, reverse=True)
        if not self._open:
            self._open.clear()

    def _examine(self, candidate: _Open, now_us: int) -> int:
        """Examines a file and returns the bytes read."""
        found = candidate.found
        known = self._known(found.name)
        if known and (known.size, known.mtime_ns) == (found.size, found.mtime_ns):
            del self._open[found.name]
            # If loaded files are kept, their presence is not news.
            if self._feed.landing.after_load != "keep":
                self._tell(_repeated(self._feed.name, found, known.digest))
            return 0
        cost = found.size + _OPENING_BYTES
        try:
            seen = _look_again(found)
            if seen != found:
                candidate.found, candidate.scans, found = seen, 0, seen
            verdict = self._verdict(found, known, now_us)
            if _look_again(found) != found:
                return cost
        except FileNotFoundError:
            del self._open[found.name]
            return cost
        except OSError as error:  # not an attempt: a fault of the machine must not cost a good file
            self._troubles.setdefault(_reason(error), found.name)
            return cost
        candidate.scans += 1
        if _is_plain(verdict) or candidate.scans >= self._attempts:
            del self._open[found.name]
            self._tell(verdict)
        return cost

    def _verdict(self, found: SeenFile, known: KnownFile | None, now_us: int) -> _Verdict:
        feed, path = self._feed.name, Path(found.path)
        try:
            digest = content_digest(path)
            if known:
                if known.digest == digest:
                    return _repeated(feed, found, digest)
                return NameClash(
                    feed, found.name, path, "a file of this name and of other content was loaded before"
                )
            records = self._reader.read(path)
            values = self._values(found)
        except UnreadableFile as error:
            return RejectedFile(feed, found.name, path, error.reason)
        except OSError as error:
            if is_of_the_machine(error):
                raise
            return RejectedFile(feed, found.name, path, _reason(error))
        # One record from the future must not block everything after it.
        newest_us = records.newest_us
        cut = newest_us is not None and newest_us > now_us + self._ahead_us
        timestamp_us = None
        if newest_us is not None:
            timestamp_us = (now_us if cut else newest_us) - self._feed.landing.lateness_us
        return FoundFile(
            feed=feed,
            name=found.name,
            size=found.size,
            mtime_ns=found.mtime_ns,
            digest=digest,
            arrival_us=now_us,
            records=records.count,
            oldest_us=records.oldest_us,
            newest_us=newest_us,
            timestamp_us=timestamp_us,
            cut=cut,
            values=values,
        )

    def _values(self, found: SeenFile) -> Mapping[str, KeyValues | None]:
        if not self._compared:
            return _NO_VALUES
        if found.size > _COMPARED_BYTES:
            return dict.fromkeys(self._compared)
        path = Path(found.path)
        return {table: self._reader.compared(path, *each) for table, each in self._compared.items()}

    def _tell(self, verdict: _Verdict) -> None:
        result = self._result
        if isinstance(verdict, RepeatedFile):
            result.repeated.append(verdict)
        elif isinstance(verdict, NameClash):
            result.clashes.append(verdict)
        elif isinstance(verdict, RejectedFile):
            result.unreadable.append(verdict)
        else:
            before = self._digests.get(verdict.name)
            self._digests[verdict.name] = verdict.digest
            if before is None:
                result.landed.append(verdict)
            elif before != verdict.digest:
                result.changed.append(verdict)


def _is_plain(verdict: _Verdict) -> bool:
    """Whether the verdict cannot change even if the file is still being written."""
    return isinstance(verdict, RepeatedFile) or (
        isinstance(verdict, FoundFile) and verdict.newest_us is not None
    )


def _repeated(feed: str, found: SeenFile, digest: str) -> RepeatedFile:
    return RepeatedFile(feed, found.name, found.size, found.mtime_ns, digest)


def _reason(error: OSError) -> str:
    if isinstance(error, ChildProcessError):
        return str(error.strerror)
    # Not `strerror`, because Arrow's contains the path.
    return os.strerror(error.errno) if error.errno else str(error)


def _look_again(found: SeenFile) -> SeenFile:
    seen = os.stat(found.path)
    return found._replace(size=seen.st_size, mtime_ns=seen.st_mtime_ns)


def _order(landed: FoundFile) -> tuple[int, str]:
    # Files without records first, because nothing waits for them.
    return (-1 if landed.timestamp_us is None else landed.timestamp_us), landed.name
