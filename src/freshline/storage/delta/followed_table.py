"""A table that another node writes. Its log is read here, without a request to that node."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from freshline.base.instants import epoch_us
from freshline.storage.delta import log
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.read_table import ReadTable
from freshline.storage.delta.snapshot import Snapshot, read_snapshot

_NOTHING: Final = Snapshot(-1, 0, None, ())


class _NotPlain(Exception):  # noqa: N818  (it is what was found)
    """A commit has actions besides added and removed files: delta-rs must read it."""


class FollowedTable(ReadTable):
    """A reader's snapshot that follows the table's log. One thread moves it, all threads may read it.

    A commit becomes visible as a whole, under a name that is known before. So a check costs a look at one
    name, and reading a commit costs its few lines, however long the log is. `reload` lists the log. It finds
    what a check cannot see: a log that was cleaned beyond the known version, or a table that was replaced.
    """

    def __init__(self, path: Path, timestamp: str, schema: pa.Schema) -> None:
        self.path = path
        self.timestamp = timestamp
        self.schema = schema
        self._snapshot = _NOTHING
        # For the last commit that made the table fresher, by its writer's clock: when it was committed and
        # when its data arrived at the source. None if the commit does not say so.
        self.committed_at: int | None = None
        self.came_at: int | None = None
        self.recovered_to: int | None = None  # the freshness after the last known commit of recovery
        self._log: int | None = None  # the inode of the listed log folder

    @property
    def snapshot(self) -> Snapshot:
        return self._snapshot

    def look(self) -> bool:
        """Takes over new commits; returns whether there were any."""
        before = self._snapshot.version
        try:
            while (following := self._next()) is not None:
                self._snapshot = following
        except (_NotPlain, ValueError, KeyError, TypeError):
            self._load()
        return self._snapshot.version != before

    def reload(self) -> bool:
        """Lists the log and takes over its state; returns whether that differs from the known one."""
        try:
            newest, folder = log.commits(self.path).stop - 1, _log_folder(self.path).stat().st_ino
        except FileNotFoundError:
            return False
        if newest == self._snapshot.version and folder == self._log:
            return False
        self._log = folder
        return self._load()

    def _load(self) -> bool:
        before = self._snapshot
        try:
            self._snapshot = read_snapshot(self.path, self.timestamp, DeltaTable(self.path))
            self.came_at = self.committed_at = None
        except TableNotFoundError:
            return False  # its node will make it soon
        return self._snapshot != before

    def _next(self) -> Snapshot | None:
        """The snapshot after the next commit; None if there is none."""
        before = self._snapshot
        try:
            actions = _actions(log.commit_path(self.path, before.version + 1))
        except FileNotFoundError:
            return None
        after = replace(before, version=before.version + 1)
        added: list[LiveFile] = []
        removed: set[str] = set()
        information: dict[str, Any] = {}
        for kind, action in actions:
            if kind == "add":
                added.append(_live(action, self.timestamp))
            elif kind == "remove":
                removed.add(unquote(action["path"]))
            elif kind == "txn":
                after = after.told(action["appId"], action["version"])
            elif kind == "commitInfo":
                information = action
            elif kind != "protocol" and (kind != "metaData" or before.version >= 0):
                raise _NotPlain(kind)
        if after.freshness != before.freshness:
            told = information.get(log.KEY, {})
            self.came_at = told.get("came_at")
            if told.get("recovery"):
                self.recovered_to = after.freshness
            self.committed_at = log.committed_at(information)
        kept = (file for file in before.files if file.path not in removed) if removed else before.files
        return replace(after, files=(*kept, *added))


def _actions(commit: Path) -> list[tuple[str, dict[str, Any]]]:
    lines = commit.read_text(encoding="utf-8").split("\n")
    return [action for line in lines if line.strip() for action in json.loads(line).items()]


def _live(add: dict[str, Any], timestamp: str) -> LiveFile:
    if add.get("deletionVector"):
        raise _NotPlain("deletionVector")
    statistics = json.loads(add["stats"])
    low, high = statistics.get("minValues", {}), statistics.get("maxValues", {})
    return LiveFile(
        unquote(add["path"]),
        statistics["numRecords"],
        add["size"],
        _instant(low.get(timestamp)),
        _instant(high.get(timestamp)),
    )


def _instant(text: str | None) -> int | None:
    return None if text is None else epoch_us(datetime.fromisoformat(text))


def _log_folder(table: Path) -> Path:
    return table / "_delta_log"
