"""Leaves out files of a load that change little, and keeps track of the values that its table has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from freshline.spark.loading.load import FileFacts, Load
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.last_values import LastValues, end_us
from freshline.storage.delta.stored_table import StoredTable


class DiscardFilter:
    """The discarding of tables with `discard`. All other tables load every file."""

    def __init__(self, last_values: Mapping[str, LastValues]) -> None:
        self._last_values = last_values  # by table with `discard`

    def kept(self, table: str, facts: Sequence[FileFacts]) -> tuple[list[FileFacts], list[bool]]:
        """The files that a load has to read, and for each of its files whether it is left out."""
        known = self._last_values.get(table)
        if known is None:
            return [*facts], [False] * len(facts)
        flags = known.discarded(each.offers[table] for each in facts)
        return [each for each, flag in zip(facts, flags, strict=True) if not flag], flags

    def commit(
        self,
        load: Load,
        facts: Sequence[FileFacts],
        stored: StoredTable,
        landing: Path,
        work: Callable[[list[FileFacts], tuple[ConsumedFile, ...]], LoadResult],
    ) -> LoadResult:
        """Does the work for the files that are kept, and records the values stored then.

        Uncertain values are forgotten: a file may have been overwritten after it was found and before it
        was read, another program may have written to the table, and the work may fail after its commit.
        """
        files, flags = self.kept(load.table, facts)
        consumed = tuple(
            replace(each.consumed, discarded=flag) for each, flag in zip(facts, flags, strict=True)
        )
        known = self._last_values.get(load.table)
        if known is None:
            return work(files, consumed)
        before = stored.version
        with known.storing([each.offers[load.table] for each in facts], flags):
            committed = work(files, consumed)
            alone = committed.version == before + 1
            if not alone or not all(_is_there(landing, each.consumed) for each in files):
                known.forget(max(map(end_us, stored.files), default=inf))
        return committed


def _is_there(landing: Path, file: ConsumedFile) -> bool:
    try:
        return file.is_at(landing / file.name)
    except OSError:  # the commit stands, even if its files cannot be checked
        return False
