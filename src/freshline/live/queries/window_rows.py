"""How many rows the newest windows of tables hold, counted without reading them."""

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
    """By table, what was loaded lately. The driver's thread alone asks and tells.

    How rows lie within what was loaded together is not known: they are taken to be spread evenly.
    """

    def __init__(self, files: Callable[[str], Iterable[LiveFile]]) -> None:
        self._files = files  # of a table, as it is now
        self._loaded: dict[str, deque[LoadedRows]] = {}  # by table
        self._longest_us: dict[str, int] = {}

    def keep(self, table: str, window_us: int) -> None:
        """Windows of that length will be asked for."""
        if window_us > self._longest_us.get(table, -1):
            self._longest_us[table] = window_us
            self._loaded[table] = deque(sorted(_of(file) for file in self._files(table) if file.rows))

    def loaded(self, table: str, after: int, to: int, rows: int) -> None:
        """An update has loaded rows."""
        longest_us = self._longest_us.get(table)
        if longest_us is None:
            return  # no window is asked for
        known = self._loaded[table]
        if rows:
            # What a table that was empty loads begins anywhere: it is counted as if it began with the window.
            known.append(LoadedRows(min(max(after, to - longest_us), to - 1), to, rows))
        while known and known[0].to <= to - longest_us:
            known.popleft()

    def rows(self, table: str, after: int, to: int) -> int:
        """About how many rows have timestamps in (after, to]."""
        return round(sum(_share(loaded, after, to) for loaded in self._loaded[table]))


def _of(file: LiveFile) -> LoadedRows:
    """A file, as far as its statistics tell; where they do not it may be in every window."""
    to = file.newest if file.newest is not None else 1 << 62
    oldest = file.oldest if file.oldest is not None else to
    return LoadedRows(min(oldest - 1, to - 1), to, file.rows)


def _share(loaded: LoadedRows, after: int, to: int) -> float:
    overlap_us = min(to, loaded.to) - max(after, loaded.after)
    return loaded.rows * overlap_us / (loaded.to - loaded.after) if overlap_us > 0 else 0.0
