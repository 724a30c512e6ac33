"""Finds the files that make a load fail, by trying them, and moves bad ones into quarantine."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from freshline.live.loop.failures import ATTEMPTS_MAX
from freshline.live.tables.file_watch import FileWatch
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.spark.errors import SENTENCE_MAX, is_of_a_row, sentence
from freshline.spark.loading.load import Load, LoadFile
from freshline.spark.loading.malformed import malformed_record
from freshline.spark.loading.updater import Updater
from freshline.spark.loading.warm_up import write_made_up
from freshline.storage.delta.stored_table import StoredTable

# If made-up rows fail, this many other files are tried before the definition is blamed.
_OTHERS_MAX: Final = 5
_CHUNK: Final = 1 << 20
# How many commits to search for loaded files: some commits only compact or clean up.
_COMMITS_SEARCHED: Final = 10


class NotTheFile(Exception):  # noqa: N818  (it is what was found)
    """A load fails and so does its control: the machine or the definition is at fault."""

    def __init__(self, error: Exception, control: Exception) -> None:
        said, also = sentence(error)[:160], sentence(control)[:80]
        why = "fail too" if also in said else f"fail too ({also})"
        super().__init__(f"{said}; made-up rows {why}, so no file goes to quarantine")


@dataclass(slots=True)
class Findings:
    """The result of a trial of a load's files."""

    bad: dict[LoadFile, str] = field(default_factory=dict)  # with the reason
    left: list[LoadFile] = field(default_factory=list)  # gone or unreachable: their content is not at fault


class FileTrial:
    """Tries a load's files like an update, without the commit.

    A file is bad if it fails alone, as a copy in the storage, before and after a *control* passes there. The
    control is made-up rows of its feed, or other files of the feed if the definition cannot compute those.
    The two differ only in their content. If the control fails too, or the copy passes, the machine, the
    definition or the landing directory is at fault, and no file is blamed.
    """

    def __init__(
        self,
        feeds: LandingFeeds,
        updater: Updater,
        folder: Path,
        others: Callable[[str], Sequence[Path]],
    ) -> None:
        self._feeds = feeds
        self._updater = updater
        self._folder = folder
        self._others = others  # by table: other files of its feed, the likeliest good ones first

    def judge(self, session: SparkSession, load: Load, error: Exception) -> Findings:
        """Finds the bad files of a load that failed with this error.

        It raises if the files are not at fault; empty findings mean that they fail only together.
        """
        with tempfile.TemporaryDirectory(prefix="trial-", dir=self._folder) as scratch:
            return _Case(self, session, load, error, Path(scratch)).findings()


class _Case:
    """One load's trial."""

    def __init__(
        self, trial: FileTrial, session: SparkSession, load: Load, error: Exception, scratch: Path
    ) -> None:
        feed = trial._feeds.of(load.table)
        self._feed = trial._feeds[feed]
        self._landing = trial._feeds.landing(feed)
        self._trial = trial
        self._session = session
        self._load = load
        self._error = error
        self._scratch = scratch
        self._numbers = count(1)

    def findings(self) -> Findings:
        findings = Findings()
        suspects = self._readable(self._load.files, findings, _CHUNK)
        # The remaining files may have failed only because another is gone.
        if len(suspects) > 1 or (suspects and findings.left):
            if self._wrong_with(suspects, self._landing) is None:
                return findings
            self._control()  # before many trials in vain
            suspects = self._failing(suspects)
        suspects = self._readable(suspects, findings, sys.maxsize)
        if not suspects:
            return findings
        seen = {file: self._seen(file) for file in suspects}
        for file in suspects:
            self._copy(file)
            self._fails_as_copy(file)
        self._control(suspects)
        # A temporary failure, such as a cancelled job, does not occur both before and after.
        findings.bad = {file: self._described(file, self._fails_as_copy(file)) for file in suspects}
        if any(self._seen(file) != seen[file] for file in suspects):
            raise self._error  # another file has replaced it meanwhile
        return findings

    def _failing(self, files: tuple[LoadFile, ...]) -> tuple[LoadFile, ...]:
        """The files that fail alone, among files that fail together, found by bisection."""
        if len(files) == 1:
            return files
        middle = len(files) // 2
        halves = (files[:middle], files[middle:])
        failing = [half for half in halves if self._wrong_with(half, self._landing) is not None]
        return tuple(file for half in failing for file in self._failing(half))

    def _fails_as_copy(self, file: LoadFile) -> str:
        """The error of a file that is tried as a copy; raises the load's error if the copy passes."""
        wrong = self._wrong_with((file,), self._scratch)
        if wrong is None:
            raise self._error
        return sentence(wrong)

    def _described(self, file: LoadFile, said: str) -> str:
        """The error of a file with the record at fault."""
        try:
            where = malformed_record(
                self._session, self._feed, self._scratch / file.facts.consumed.name, said
            )
        except Exception:  # the file is known to be bad; the sentence then lacks the record
            where = ""
        return said[: SENTENCE_MAX - len(where)].rstrip(".") + where if where else said

    def _wrong_with(self, files: tuple[LoadFile, ...], folder: Path) -> Exception | None:
        try:
            self._trial._updater.check(self._session, self._load.only(files), folder)
        except Exception as error:  # any error is a result of the trial
            return error
        return None

    def _control(self, suspects: Sequence[LoadFile] = ()) -> None:
        """Checks that made-up rows or another file pass."""
        made_up = self._scratch / f".made-up-{next(self._numbers)}"
        try:
            write_made_up(self._session, self._feed, made_up)
            self._trial._updater.check_control(self._session, self._load.table, made_up)
        except Exception as failure:  # any error counts, as for a suspect
            blamed = {self._landing / file.facts.consumed.name for file in suspects}
            others = [path for path in self._trial._others(self._load.table) if path not in blamed]
            if not any(self._passes(path) for path in others[:_OTHERS_MAX]):
                raise NotTheFile(self._error, failure) from self._error

    def _passes(self, path: Path) -> bool:
        try:
            self._trial._updater.check_control(self._session, self._load.table, path)
        except Exception:  # as above
            return False
        return True

    def _readable(
        self, files: tuple[LoadFile, ...], findings: Findings, bytes_max: int
    ) -> tuple[LoadFile, ...]:
        """The files that can be read; unreachable ones are left without blame."""
        readable = tuple(file for file in files if self._can_be_read(file, bytes_max))
        findings.left += [file for file in files if file not in readable]
        return readable

    def _can_be_read(self, file: LoadFile, bytes_max: int) -> bool:
        try:
            with (self._landing / file.facts.consumed.name).open("rb") as data:
                while bytes_max > 0 and (chunk := data.read(_CHUNK)):
                    bytes_max -= len(chunk)
        except OSError:
            return False
        return True

    def _copy(self, file: LoadFile) -> None:
        target = self._scratch / file.facts.consumed.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._landing / file.facts.consumed.name, target)

    def _seen(self, file: LoadFile) -> tuple[int, int, int]:
        seen = os.stat(self._landing / file.facts.consumed.name)
        return seen.st_ino, seen.st_size, seen.st_mtime_ns


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

    def may_be_why(self, load: Load, error: Exception) -> bool:
        """Whether a load's files are to be tried: a row was at fault, or it has failed often enough."""
        often = self._attempts(load.table) + 1 >= ATTEMPTS_MAX
        return bool(load.files) and (often or is_of_a_row(error))

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
