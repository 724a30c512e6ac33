"""Messages of other threads to the driver's thread; each message makes its own event."""

from __future__ import annotations

import queue
from dataclasses import dataclass
from typing import Any, Protocol

from freshline.base.duration import SECOND
from freshline.kernel.core.events import Event, JobPaused
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.kernel.tables.remote_table import RemoteAdvanced

# Far more than usual: a full queue only slows discovery down.
_MESSAGES_MAX = 100_000


class MessageObserver(Protocol):
    """Receives the content of messages that the kernel does not need."""

    def landed(self, landed: FileFound) -> None: ...

    def emptied(self, feed: str, at: int) -> None: ...

    def came(self, feed: str, at: int) -> None: ...

    def rows_came(self, table: str, after: int, to: int, rows: int) -> None: ...


class Message(Protocol):
    """A finding of one of the run's sources. Each source has its own messages."""

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        """The event for the kernel, if any. The driver's thread calls it once."""


class Inbox:
    """The driver's messages: any thread posts, only the driver's thread collects."""

    def __init__(self) -> None:
        self._messages: queue.Queue[Message] = queue.Queue(_MESSAGES_MAX)

    def post(self, message: Message) -> None:
        self._messages.put(message)

    def collect(self, timeout_us: int) -> list[Message]:
        """Waits for a message, then returns all that are there."""
        messages: list[Message] = []
        try:
            message = (
                self._messages.get(timeout=timeout_us / SECOND) if timeout_us else self._messages.get_nowait()
            )
            while True:
                messages.append(message)
                message = self._messages.get_nowait()
        except queue.Empty:
            return messages

    def is_empty(self) -> bool:
        """Whether the driver has collected every message."""
        return self._messages.empty()


@dataclass(frozen=True, slots=True)
class FileFound:
    """A data file was found that some tables have not loaded yet."""

    feed: str
    file: DataFile
    tables: frozenset[str]
    arrival: int
    waited: bool = False  # it was there when the run began

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        observer.landed(self)
        return FileArrived(self.feed, self.file, self.tables)


@dataclass(frozen=True, slots=True)
class RemoteCommit:
    """Another node has committed to its table, which has this freshness now."""

    table: str
    freshness: int
    came_at: int | None = None  # when the burst came to its source
    committed_at: int | None = None
    before: int = 0  # its freshness in the last message
    rows: int = 0  # that it has got since then
    recovery: bool = False  # whether a commit since then was recovery

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        observer.rows_came(self.table, self.before, self.freshness, self.rows)
        return RemoteAdvanced(self.table, self.freshness, self.came_at, self.committed_at, self.recovery)


@dataclass(frozen=True, slots=True)
class EmptyFile:
    """A file without records arrived: no table loads it."""

    feed: str
    arrival: int

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        observer.emptied(self.feed, self.arrival)
        return None


@dataclass(frozen=True, slots=True)
class FileRefused:
    """A feed brought a file that cannot be loaded and goes to quarantine."""

    feed: str
    at: int

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        observer.came(self.feed, self.at)
        return None


@dataclass(frozen=True, slots=True)
class JobPutAside:
    """A job was paused between two of its parts."""

    job: Any

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return JobPaused(self.job)


class Judge(Protocol):
    """Decides what the end of a job of its kind means."""

    def judge(self, ended: JobEnded, now: int) -> Event: ...


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job ended with a result or an exception. Its kind's judge decides what that means."""

    job: Any  # of that kind
    outcome: object
    at: int
    judge: Judge

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        return self.judge.judge(self, now)
