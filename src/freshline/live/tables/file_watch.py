"""The thread that searches for data files."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial

from freshline.base.clock import Clock, clock
from freshline.base.duration import SECOND
from freshline.landing.discovery import (
    DiscoveredFiles,
    Discovery,
    FoundFile,
    NameClash,
    RejectedFile,
    RepeatedFile,
)
from freshline.landing.parquet_process import ParquetProcess
from freshline.live.loop.messages import EmptyFile, FileFound, Message
from freshline.live.loop.run_notes import RunNotes
from freshline.live.tables.discard_control import DiscardControl
from freshline.live.tables.file_to_load import FileToLoad
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.load_records import LoadRecords
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.spark.errors import sentence
from freshline.spark.loading.load import FileFacts
from freshline.storage.delta.files import ConsumedFile

_EVERY_MAX_S = 0.5
# The most files of one feed in one look: a backlog must not delay the search for other feeds' files.
_BYTES_MAX = 2 << 20


class FileWatch:
    """Finds the files of all feeds, reads their timestamps outside the tracks and posts the files."""

    def __init__(
        self,
        feeds: LandingFeeds,
        books: LoadRecords,
        refusals: QuarantineQueue,
        notes: RunNotes,
        files_max: int | None = None,
        now: Clock = clock,
        warmth: WarmPlans | None = None,
        discarding: DiscardControl | None = None,
    ) -> None:
        self._feeds = feeds
        self._books = books
        self._refusals = refusals
        self._notes = notes
        self._clock = now
        self._warmth = warmth or WarmPlans()
        self._discarding = discarding
        self._files_left = dict.fromkeys(feeds.read, files_max)
        # One reader for all feeds; it is warm as soon as Spark is.
        reads_parquet = any(feeds[name].landing.format == "parquet" for name in feeds.read)
        self._process = ParquetProcess() if reads_parquet else None
        self._discoveries = {
            name: Discovery(
                feeds[name],
                feeds.landing(name),
                partial(books.known, name),
                process=self._process,
                compared=None if discarding is None else discarding.columns(name),
            )
            for name in feeds.read
        }
        # By feed, by name, then by table that has not loaded it: the file that was posted for the table.
        self._files: dict[str, dict[str, dict[str, FileToLoad]]] = {name: {} for name in feeds.read}
        self._left: set[tuple[str, str]] = set()  # (table, name) of files that a running job leaves out
        self._again: deque[tuple[str, str]] = deque()  # (feed, name) of files to search for again
        self._loaded: deque[tuple[str, str]] = deque()  # (feed, name) of files that discovery may forget
        self._wanting: dict[frozenset[str], frozenset[str]] = {}  # each set of tables once, not for each file
        self._lock = threading.Lock()  # for the above: tables load files while others are found
        self._untold: list[tuple[str, Callable[[], None]]] = []  # by feed: posts to retry
        self._troubles: dict[tuple[str, str | None], str] = {}  # by feed and folder: the last report
        self._unread: dict[str, str] = {}  # by feed: why its last look failed
        self._backlogged: deque[str] = deque()  # feeds with files beyond the limit of a look
        self._begun: set[str] = set()  # feeds whose files from before the run have been found
        self._stop = threading.Event()
        self._looks = 0  # the number of looks at all feeds
        self._found_at_look = 0
        shortest = min((feeds[name].period_us or SECOND for name in feeds.read), default=SECOND)
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
        """Whether the last looks found nothing; a file that cannot be read yet is retried a few times."""
        return self._looks - self._found_at_look > 4

    def loaded(self, table: str, names: Iterable[str]) -> None:
        """Forgets files that a table has loaded or that were quarantined."""
        feed = self._feeds.of(table)
        with self._lock:
            files = self._files[feed]
            for name in names:
                waiting = files[name]
                file = waiting.pop(table, None)
                if file is not None:
                    self._let_go(table, file.facts)
                if not waiting:
                    del files[name]
                    self._loaded.append((feed, name))
                if (table, name) in self._left:
                    self._left.remove((table, name))
                    self._again.append((feed, name))
            if not files:
                files.clear()  # an emptied dictionary keeps the memory of its largest size

    def leave(self, table: str, name: str) -> None:
        """Marks an unreachable file that a table's job leaves out: it is searched for again."""
        with self._lock:
            self._left.add((table, name))

    def waiting(self, feed: str) -> list[str]:
        """The names of a feed's files that some table has not loaded, in the order found."""
        with self._lock:
            return [*self._files[feed]]

    def waiting_for(self, table: str) -> int:
        """The number of files that this table has not loaded."""
        with self._lock:
            return sum(table in tables for files in self._files.values() for tables in files.values())

    def unread(self) -> list[str]:
        """Sentences about feeds whose landing directories could not be read at the last look."""
        return [f"files of {feed} cannot be read: {why}" for feed, why in [*self._unread.items()]]

    def _run(self) -> None:
        look_at = time.monotonic()
        # With a backlog there is no pause. Other feeds are not looked at more often: a file that cannot be
        # read yet needs time.
        while not self._stop.wait(0 if self._backlogged else max(0.0, look_at - time.monotonic())):
            if time.monotonic() >= look_at:
                self._look()
                look_at = time.monotonic() + self._every_s
            elif self._backlogged:
                self._scan(self._backlogged.popleft())
            self._refusals.try_again()
            self._forget_loaded()
            while self._again:
                feed, name = self._again.popleft()
                self._discoveries[feed].look_again(name)
                self._found_at_look = self._looks
            # Discovery reports a file once: a post that failed because of the storage is retried.
            self._untold = [(feed, tell) for feed, tell in self._untold if not self._tell(feed, tell)]
            if self._untold or self._backlogged or self._refusals.are_fresh():
                self._found_at_look = self._looks

    def _forget_loaded(self) -> None:
        """Lets discovery forget loaded files. The ledger is asked here, not in the driver's thread."""
        while self._loaded:
            feed, name = self._loaded[0]
            if not self._tell(feed, partial(self._discoveries[feed].loaded, name)):
                return  # the next look tries again
            self._loaded.popleft()

    def _look(self) -> None:
        """Looks at every feed whose tables are warm; backlogs are read in parts in between."""
        for feed in self._discoveries:
            if any(self._warmth.is_awaited(table) for table in self._feeds.readers(feed)):
                self._found_at_look = self._looks + 1  # its content is not known
            elif feed not in self._backlogged:
                self._scan(feed)
        self._looks += 1

    def _scan(self, feed: str) -> None:
        try:
            found = self._discoveries[feed].scan(self._clock(), _BYTES_MAX)
        except (OSError, sqlite3.Error) as error:  # the next scan reports the files
            self._unread[feed] = sentence(error)
            self._report(feed, sentence(error))
            return
        if found.left:
            self._backlogged.append(feed)
        else:
            self._take(feed, found)
            self._complain(feed, found)

    def _complain(self, feed: str, found: DiscoveredFiles) -> None:
        """Reports folders that cannot be read; a missing directory only once a file should be there."""
        self._unread.pop(feed, None)
        for folder, trouble in found.troubles.items():
            self._unread[feed] = f"{folder}: {trouble}" if folder else trouble
            self._report(feed, f"{folder}: {trouble}" if folder else trouble, folder)
        if found.link is not None:
            note = f"{feed}: {found.link} is a symbolic link, and links are not followed: put files there"
            self._notes.note(self._clock(), note)
        period_us = self._feeds[feed].period_us or 0
        if found.missing and self._looks * self._every_s * SECOND > period_us:
            self._report(feed, "its landing directory does not exist", "")

    def _take(self, feed: str, found: DiscoveredFiles) -> None:
        waited = feed not in self._begun
        self._begun.add(feed)
        if found.landed or found.clashes or found.unreadable:
            self._found_at_look = self._looks
        refusals: list[NameClash | RejectedFile] = [*found.clashes, *found.unreadable]
        for refused in refusals:
            self._refusals.put(feed, refused.name, refused.path, refused.reason, 1)
        for repeated in found.repeated:
            # Loaded before: if it cannot be removed now, the next run does so.
            self._tell(repeated.feed, partial(self._books.forget, repeated.feed, _consumed(repeated)))
        for changed in found.changed:
            # Overwritten before it was loaded: the commit records the new content.
            with self._lock:
                self._correct(changed)
            if changed.timestamp_us is not None:  # tables that had skipped it must load the new content
                self._announce(changed, waited)
        landed = deque(found.landed)
        found.landed.clear()  # of a backlog, either the found file is in memory or the posted one
        while landed:
            self._announce(landed.popleft(), waited)

    def _announce(self, landed: FoundFile, waited: bool) -> None:
        """Posts a found file, unless an earlier post has to be retried first."""
        tell = partial(self._landed, landed, waited)
        if self._untold or not self._tell(landed.feed, tell):
            self._untold.append((landed.feed, tell))

    def _tell(self, feed: str, tell: Callable[[], None]) -> bool:
        """Posts; returns whether that worked."""
        try:
            tell()
        except (OSError, sqlite3.Error) as error:
            self._report(feed, sentence(error))
            return False
        self._troubles.pop((feed, None), None)
        return True

    def _report(self, feed: str, trouble: str, folder: str | None = None) -> None:
        if self._troubles.get((feed, folder)) != trouble:  # not at every look
            self._troubles[feed, folder] = trouble
            self._notes.note(self._clock(), f"{feed}: its files cannot be read: {trouble}")

    def _landed(self, landed: FoundFile, waited: bool) -> None:
        left = self._files_left[landed.feed]
        if left == 0:
            return
        if landed.timestamp_us is None:
            self._post(EmptyFile(landed.feed, landed.arrival_us))
            self._books.enter_empty(landed.feed, _consumed(landed))
            return
        wanting, file = self._hand_out(landed, max(1, landed.timestamp_us))
        if not wanting:
            return
        if left is not None:
            self._files_left[landed.feed] = left - 1
        if landed.cut:
            note = f"{landed.feed}: {landed.name} has a timestamp after its arrival, which is used instead"
            self._notes.note(landed.arrival_us, note)
        self._post(FileFound(landed.feed, file, wanting, landed.arrival_us, waited))

    def _hand_out(self, landed: FoundFile, timestamp_us: int) -> tuple[frozenset[str], FileToLoad]:
        """The tables that need a file, and the file to post.

        Some tables may have it already: a file can disappear and come back before it is loaded.
        """
        with self._lock:
            missing = self._books.missing(landed.feed, landed.name)
            waiting = self._correct(landed)
            wanting = frozenset(missing - waiting.keys())
            wanting = self._wanting.setdefault(wanting, wanting)
            file = FileToLoad(timestamp_us, landed.name, self._facts(landed, wanting))
            if wanting:
                self._files[landed.feed][landed.name] = waiting | dict.fromkeys(wanting, file)
            return wanting, file

    def _correct(self, landed: FoundFile) -> dict[str, FileToLoad]:
        """The posted files of that name that tables have not loaded, with their facts updated."""
        waiting = self._files[landed.feed].get(landed.name, {})
        if waiting:
            for table, file in waiting.items():
                self._let_go(table, file.facts)
            facts = self._facts(landed, waiting)
            for file in waiting.values():
                file.facts = facts
        return waiting

    def _facts(self, landed: FoundFile, tables: Collection[str]) -> FileFacts:
        # A timestamp from a name is not one of a record.
        newest = None if landed.oldest_us is None else landed.newest_us
        if self._discarding is not None and landed.values:
            compared = {table: each for table, each in landed.values.items() if table in tables}
            offers = self._discarding.offers(compared, self._clock(), newest)
            return FileFacts(_consumed(landed), landed.records, landed.oldest_us, newest, offers)
        return FileFacts(_consumed(landed), landed.records, landed.oldest_us, newest)

    def _let_go(self, table: str, facts: FileFacts) -> None:
        """Drops a table's offer: the file was loaded, quarantined or overwritten."""
        if self._discarding is not None and table in facts.offers:
            self._discarding.last_values[table].let_go(facts.offers[table])


def _consumed(file: FoundFile | RepeatedFile) -> ConsumedFile:
    return ConsumedFile(file.name, file.size, file.mtime_ns, file.digest)
