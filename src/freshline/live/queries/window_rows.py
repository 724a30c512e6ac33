"""Counts the rows in the newest windows of tables, without reading the tables."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from freshline.storage.delta.files import LiveFile


class LoadedRows(NamedTuple):
    """Rows with timestamps in (after, to]."""

    after: int
    to: int
    rows: int


class WindowRows:
    """The latest loads of each table. Only the driver's thread uses it.

    The distribution of rows within a load is not known: it is assumed to be even.
    """

    def __init__(self, files: Callable[[str], Iterable[LiveFile]]) -> None:
        self._files = files  # the present files of a table
        self._loaded: dict[str, deque[LoadedRows]] = {}  # by table
        self._kept_from: dict[str, int] = {}  # by table: all loads since this timestamp are kept
        self._longest_us: dict[str, int] = {}

    def keep(self, table: str, window_us: int) -> None:
        """Keeps enough loads for windows of that length."""
        if window_us > self._longest_us.get(table, -1):
            self._longest_us[table] = window_us
            self._kept_from[table] = -(1 << 62)
            self._loaded[table] = deque(sorted(_of(file) for file in self._files(table) if file.rows))

    def loaded(self, table: str, after: int, to: int, rows: int) -> None:
        """Records the rows of an update."""
        longest_us = self._longest_us.get(table)
        if longest_us is None:
            return  # no query reads the table
        known = self._loaded[table]
        if rows:
            # A first load may begin at any time: it counts as if it began with the window.
            known.append(LoadedRows(min(max(after, to - longest_us), to - 1), to, rows))
        while known and known[0].to <= to - longest_us:
            self._kept_from[table] = known.popleft().to

    def rows(self, table: str, after: int, to: int) -> int:
        """The estimated number of rows with timestamps in (after, to].

        Beside a table that is far behind, a window is older than all that is kept: the files have its rows.
        """
        loaded: Iterable[LoadedRows] = self._loaded[table]
        if after < self._kept_from[table]:
            loaded = (_of(file) for file in self._files(table) if file.rows)
        return round(sum(_share(each, after, to) for each in loaded))


def _of(file: LiveFile) -> LoadedRows:
    """A file's rows by its statistics; without statistics they may be in every window."""
    to = file.newest if file.newest is not None else 1 << 62
    oldest = file.oldest if file.oldest is not None else to
    return LoadedRows(min(oldest - 1, to - 1), to, file.rows)


def _share(loaded: LoadedRows, after: int, to: int) -> float:
    overlap_us = min(to, loaded.to) - max(after, loaded.after)
    return loaded.rows * overlap_us / (loaded.to - loaded.after) if overlap_us > 0 else 0.0
