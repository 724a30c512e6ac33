"""Finds and quarantines the files that make a load fail again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from freshline.live.loop.failures import ATTEMPTS_MAX
from freshline.live.tables.file_trial import FileTrial, Findings
from freshline.live.tables.file_watch import FileWatch
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.spark.loading.load import Load, LoadFile
from freshline.storage.delta.stored_table import StoredTable

# How many commits to search for loaded files: some commits only compact or clean up.
_COMMITS_SEARCHED = 10


class FileBlame:
    """Tries a load's files, quarantines bad ones and has unreachable ones searched for again."""

    def __init__(
        self,
        feeds: LandingFeeds,
        trial: FileTrial,
        refusals: QuarantineQueue,
        watch: FileWatch,
        attempts: Callable[[str], int],
    ) -> None:
        self._feeds = feeds
        self._trial = trial
        self._refusals = refusals
        self._watch = watch
        self._attempts = attempts  # by table: the failures of its present load

    def may_be_why(self, load: Load) -> bool:
        """Whether a load has failed often enough for its files to be tried."""
        return bool(load.files) and self._attempts(load.table) + 1 >= ATTEMPTS_MAX

    def judge(self, session: SparkSession, load: Load, error: Exception) -> Findings:
        return self._trial.judge(session, load, error)

    def put_aside(self, load: Load, bad: Mapping[LoadFile, str]) -> None:
        """Moves files into quarantine, each with its reason."""
        table = load.table
        feed, attempts = self._feeds.of(table), self._attempts(table) + 1
        for file, reason in bad.items():
            name = file.facts.consumed.name
            self._refusals.put(feed, name, self._feeds.landing(feed) / name, reason, attempts)

    def leave(self, load: Load, files: Iterable[LoadFile]) -> None:
        """Leaves files out of the load without blame: they are searched for again."""
        for file in files:
            self._watch.leave(load.table, file.facts.consumed.name)


class OtherFiles:
    """Other files to compare a suspect with."""

    def __init__(
        self,
        feeds: LandingFeeds,
        tables: Mapping[str, StoredTable],
        archive: Path,
        waiting: Callable[[str], Sequence[str]],
    ) -> None:
        self._feeds = feeds
        self._tables = tables
        self._archive = archive
        self._waiting = waiting  # by feed: the names of files that some table has not loaded

    def of(self, table: str) -> list[Path]:
        """Files of a table's feed: the last loaded ones, then waiting ones, newest first."""
        feed, stored = self._feeds.of(table), self._tables[table]
        commits = [files for _, files in stored.consumed_since(max(-1, stored.version - _COMMITS_SEARCHED))]
        loaded = [file.name for files in reversed(commits) for file in files][:1]
        paths = [
            folder / name
            for name in (*loaded, *reversed(self._waiting(feed)))
            for folder in (self._feeds.landing(feed), self._archive / feed)
        ]
        return [path for path in paths if path.is_file()]
