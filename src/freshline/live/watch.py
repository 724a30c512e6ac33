"""The thread that looks for data files."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from freshline.definitions.duration import SECOND
from freshline.definitions.warehouse import Warehouse
from freshline.landing.discovery import Clash, Discovered, Discovery, Repeated, Unreadable
from freshline.landing.discovery import Landed as LandedFile
from freshline.landing.parquet_process import ParquetProcess
from freshline.live.clock import clock
from freshline.live.messages import Emptied, Landed, Message
from freshline.live.notes import Notes
from freshline.live.refusals import Refusals
from freshline.live.trouble import sentence
from freshline.live.worker import Books
from freshline.spark.updater import FileToLoad
from freshline.storage.delta import Consumed
from freshline.storage.ledger import Ledger
from freshline.tables.events import DataFile

_EVERY_MAX_S = 0.5
# What is read of one feed in one look: a backlog must not keep the files of other feeds from being found.
_BYTES_MAX = 2 << 20


class Watch:
    """Finds the files of all feeds, reads their timestamps off the tracks, and posts them to the driver."""

    def __init__(
        self,
        warehouse: Warehouse,
        landing: Mapping[str, Path],
        ledger: Ledger,
        refusals: Refusals,
        notes: Notes,
        books: Books,
        files_max: int | None,
    ) -> None:
        self._warehouse = warehouse
        self._ledger = ledger
        self._refusals = refusals
        self._notes = notes
        self._books = books
        self._files_left = dict.fromkeys(landing, files_max)
        self._readers: dict[str, list[str]] = {}
        for table in warehouse.tables.values():
            if table.feed is not None:
                self._readers.setdefault(table.feed, []).append(table.name)
        # One for all feeds, and warm by the time that Spark is.
        reads_parquet = any(warehouse.feeds[name].landing.format == "parquet" for name in self._readers)
        self._process = ParquetProcess() if reads_parquet else None
        self._discoveries = {
            name: Discovery(warehouse.feeds[name], root, self._known(name), process=self._process)
            for name, root in landing.items()
            if name in self._readers
        }
        # What is known of files on their way, and the tables that have yet to load them.
        self._files: dict[tuple[str, str], tuple[FileToLoad, set[str]]] = {}
        self._left: set[tuple[str, str]] = set()  # (table, name) of files that a running job leaves
        self._again: deque[tuple[str, str]] = deque()  # (feed, name) of files to be looked for anew
        self._lock = threading.Lock()  # for these: tables load files while others are found
        self._untold: list[tuple[str, Callable[[], None]]] = []  # by feed: what is still to be done
        self._troubles: dict[tuple[str, str | None], str] = {}  # by feed and folder: what was last reported
        self._backlogged: deque[str] = deque()  # feeds with files that no look has reached yet
        self._begun: set[str] = set()  # feeds whose files of before the run have been found
        self._stop = threading.Event()
        self._looks = 0  # how often all feeds were looked at
        self._found_at_look = 0
        shortest = min(
            (warehouse.feeds[name].period_us or SECOND for name in self._discoveries), default=SECOND
        )
        self._every_s = min(_EVERY_MAX_S, shortest / SECOND / 20)
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._post: Callable[[Message], None] = lambda message: None

    def start(self, post: Callable[[Message], None]) -> None:
        self._post = post
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10)
        if self._process is not None:
            self._process.close()

    def is_quiet(self) -> bool:
        """Whether the last looks found nothing: a file that cannot be read yet is tried a few times."""
        return self._looks - self._found_at_look > 4

    def file(self, feed: str, name: str) -> FileToLoad:
        """What is known of a file that was posted."""
        return self._files[feed, name][0]

    def loaded(self, table: str, names: Iterable[str]) -> None:
        """A table has loaded these files, or they were put aside."""
        feed = self._warehouse.tables[table].feed
        assert feed is not None
        with self._lock:
            for name in names:
                waiting = self._files[feed, name][1]
                waiting.discard(table)
                if not waiting:
                    del self._files[feed, name]
                if (table, name) in self._left:
                    self._left.remove((table, name))
                    self._again.append((feed, name))

    def leave(self, table: str, name: str) -> None:
        """A table's job is about to end without this file, which is out of reach: it is looked for anew."""
        with self._lock:
            self._left.add((table, name))

    def waiting(self, feed: str) -> list[str]:
        """The names of a feed's files that some table has yet to load, as they were found."""
        with self._lock:
            return [name for of, name in self._files if of == feed]

    def _run(self) -> None:
        look_at = time.monotonic()
        # While there is a backlog there is no pause; others are looked at no more often for it: a file that
        # cannot be read yet is given time.
        while not self._stop.wait(0 if self._backlogged else max(0.0, look_at - time.monotonic())):
            if time.monotonic() >= look_at:
                self._look()
                look_at = time.monotonic() + self._every_s
            elif self._backlogged:
                self._scan(self._backlogged.popleft())
            self._refusals.try_again()
            while self._again:
                feed, name = self._again.popleft()
                self._discoveries[feed].look_again(name)
                self._found_at_look = self._looks
            # Discovery tells of a file once: what the storage's trouble prevented is tried again.
            self._untold = [(feed, tell) for feed, tell in self._untold if not self._tell(feed, tell)]
            if self._untold or self._backlogged or self._refusals.are_fresh():
                self._found_at_look = self._looks

    def _look(self) -> None:
        """Looks at every feed; of one with a backlog, parts are read in between."""
        for feed in self._discoveries:
            if feed not in self._backlogged:
                self._scan(feed)
        self._looks += 1

    def _scan(self, feed: str) -> None:
        try:
            found = self._discoveries[feed].scan(clock(), _BYTES_MAX)
        except (OSError, sqlite3.Error) as error:  # what was found is told by the next scan
            self._report(feed, sentence(error))
            return
        if found.left:
            self._backlogged.append(feed)
        else:
            self._take(feed, found)
            self._complain(feed, found)

    def _complain(self, feed: str, found: Discovered) -> None:
        """Says what cannot be looked at; that a directory is not there, once a file should be in it."""
        for folder, trouble in found.troubles.items():
            self._report(feed, f"{folder}: {trouble}" if folder else trouble, folder)
        if found.link is not None:
            note = f"{feed}: {found.link} is a symbolic link, and links are not followed: put files there"
            self._notes.note(clock(), note)
        period_us = self._warehouse.feeds[feed].period_us or 0
        if found.missing and self._looks * self._every_s * SECOND > period_us:
            self._report(feed, "its landing directory is not there", "")

    def _take(self, feed: str, found: Discovered) -> None:
        waited = feed not in self._begun
        self._begun.add(feed)
        if found.landed or found.clashes or found.unreadable:
            self._found_at_look = self._looks
        refusals: list[Clash | Unreadable] = [*found.clashes, *found.unreadable]
        for refused in refusals:
            self._refusals.put(feed, refused.name, refused.path, refused.reason, 1)
        for repeated in found.repeated:
            # Loaded long ago: if it cannot be cleared away now, the next run does it.
            self._tell(repeated.feed, partial(self._books.forget, repeated.feed, _consumed(repeated)))
        for changed in found.changed:
            # Overwritten before it was loaded: the commit notes what is there now.
            with self._lock:
                waiting = self._files.get((changed.feed, changed.name))
                if waiting is not None:
                    self._files[changed.feed, changed.name] = (_to_load(changed), waiting[1])
            if changed.timestamp_us is not None:  # tables that had skipped it are to load what it is now
                self._untold.append((changed.feed, partial(self._landed, changed, waited)))
        self._untold += [(landed.feed, partial(self._landed, landed, waited)) for landed in found.landed]

    def _tell(self, feed: str, tell: Callable[[], None]) -> bool:
        """Whether it could be told."""
        try:
            tell()
        except (OSError, sqlite3.Error) as error:
            self._report(feed, sentence(error))
            return False
        self._troubles.pop((feed, None), None)
        return True

    def _report(self, feed: str, trouble: str, folder: str | None = None) -> None:
        if self._troubles.get((feed, folder)) != trouble:  # once, not at every look
            self._troubles[feed, folder] = trouble
            self._notes.note(clock(), f"{feed}: its files cannot be taken in: {trouble}")

    def _landed(self, landed: LandedFile, waited: bool) -> None:
        left = self._files_left[landed.feed]
        if left == 0:
            return
        readers = self._readers[landed.feed]
        if landed.timestamp_us is None:
            self._post(Emptied(landed.feed, landed.arrival_us))
            for reader in readers:
                self._ledger.remember(reader, _consumed(landed))
            self._books.forget(landed.feed, _consumed(landed))
            return
        wanting = self._wanting(landed)
        if not wanting:
            return
        if left is not None:
            self._files_left[landed.feed] = left - 1
        if landed.cut:
            note = f"{landed.feed}: {landed.name} is dated ahead of its arrival, and was cut to it"
            self._notes.note(landed.arrival_us, note)
        file = DataFile(max(1, landed.timestamp_us), landed.name)
        self._post(Landed(landed.feed, file, wanting, landed.arrival_us, waited))

    def _wanting(self, landed: LandedFile) -> frozenset[str]:
        """The tables that are to be told of a file.

        Some may know of it already: it may go and come back before it is loaded, from quarantine too.
        """
        key, readers = (landed.feed, landed.name), self._readers[landed.feed]
        with self._lock:
            missing = {table for table in readers if self._ledger.find(table, landed.name) is None}
            told = self._files[key][1] if key in self._files else set()
            if missing or told:
                self._files[key] = (_to_load(landed), missing | told)
            return frozenset(missing - told)

    def _known(self, feed: str) -> Callable[[str], Consumed | None]:
        """A file is known once every table of its feed has it; then it need not be looked at again."""
        readers = self._readers[feed]

        def known(name: str) -> Consumed | None:
            found = [self._ledger.find(table, name) for table in readers]
            return found[0] if all(found) else None

        return known


def _to_load(landed: LandedFile) -> FileToLoad:
    # A name's timestamp is not that of a record.
    newest = None if landed.oldest_us is None else landed.newest_us
    return FileToLoad(_consumed(landed), landed.records, landed.oldest_us, newest)


def _consumed(file: LandedFile | Repeated) -> Consumed:
    return Consumed(file.name, file.size, file.mtime_ns, file.digest)
