"""Which of a job's files are left out since they change little, and what its table has stored after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from math import inf
from pathlib import Path

from freshline.kernel.tables.update import Update
from freshline.spark.loading.file_to_load import FileFacts
from freshline.spark.loading.load_result import LoadResult
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.last_values import LastValues, end_us
from freshline.storage.delta.stored_table import StoredTable


class DiscardFilter:
    """What tables with `discard` do without. All other tables load every file."""

    def __init__(self, last_values: Mapping[str, LastValues]) -> None:
        self._last_values = last_values  # by table with `discard`

    def kept(self, job: Update, facts: Sequence[FileFacts]) -> tuple[Update, list[FileFacts], list[bool]]:
        """A job with the files that it has to load, what is known of them, and which it leaves out."""
        known = self._last_values.get(job.task.name)
        if known is None:
            return job, [*facts], [False] * len(facts)
        flags = known.discarded(each.offers[job.task.name] for each in facts)
        kept = copy(job)
        kept.files = tuple(file for file, flag in zip(job.files, flags, strict=True) if not flag)
        return kept, [each for each, flag in zip(facts, flags, strict=True) if not flag], flags

    def commit(
        self,
        job: Update,
        facts: Sequence[FileFacts],
        stored: StoredTable,
        landing: Path,
        work: Callable[[Update, list[FileFacts], tuple[ConsumedFile, ...]], LoadResult],
    ) -> LoadResult:
        """Has the work done for the files that are kept, and notes what is stored then.

        What is not certain is forgotten: a file may have been overwritten after it was found and before it
        was read, somebody else may have written to the table, and the work may fail after its commit.
        """
        kept, files, flags = self.kept(job, facts)
        consumed = tuple(
            replace(each.consumed, discarded=flag) for each, flag in zip(facts, flags, strict=True)
        )
        known = self._last_values.get(job.task.name)
        if known is None:
            return work(kept, files, consumed)
        before = stored.version
        with known.storing([each.offers[job.task.name] for each in facts], flags):
            committed = work(kept, files, consumed)
            alone = committed.version == before + 1
            if not alone or not all(_is_there(landing, each.consumed) for each in files):
                known.forget(max(map(end_us, stored.files), default=inf))
        return committed


def _is_there(landing: Path, file: ConsumedFile) -> bool:
    try:
        return file.is_at(landing / file.name)
    except OSError:  # the commit stands, whatever can be said of its files
        return False
