"""Batches: how many files of a backlog one job takes.

Docs/batches.md says how long such a job may be. Here is how many files that makes, by what they cost as far
as that is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from freshline.kernel.tables.events import DataFile
    from freshline.kernel.tables.task import TableTask
    from freshline.kernel.tables.update import Update


class BatchCost(NamedTuple):
    """What a job of several files costs at worst, as runs have shown.

    A file costs `per_file_ns`, or `per_row_ns` for each of its rows if that is more: of runs whose files are
    alike nobody can tell which of the two it is. Where no job had several, `startup_us` is 0: it is known
    what each file costs alone, and no more.
    """

    startup_us: int
    per_file_ns: int
    per_row_ns: int

    def fitting(self, files: Sequence[DataFile], allowed_us: int) -> int:
        """How many of these files, the first ones, a job may take that is to cost no more than that."""
        left_ns = (allowed_us - self.startup_us) * 1_000
        for count, file in enumerate(files):
            left_ns -= max(self.per_file_ns, self.per_row_ns * file.rows)
            if left_ns < 0:
                return count
        return len(files)


def fitting(task: TableTask, allowed_us: int) -> int:
    """How many of a table's waiting files, the oldest first, one job may take; at least one.

    Twice as many as ever went well at most: what a batch costs is known well only of such as were tried.
    Where it is not known at all, every file costs what it costs alone, but for the start-up.
    """
    files = task.intake.waiting_files()
    most = min(len(files), task.batch_max)
    if most < 2:
        return 1
    known = task.batch_cost
    if known is None:
        return _declared(task, allowed_us, most)
    found = max(1, known.fitting(files[:most], allowed_us))
    if known.startup_us:
        return found
    alone_us = -(-max(known.per_file_ns, known.per_row_ns * files[0].rows) // 1_000)
    return max(found, _declared(task, allowed_us, most), _after_one(task, allowed_us - alone_us, most))


def _after_one(task: TableTask, left_us: int, most: int) -> int:
    """How many it may be where one file alone leaves so much: each other costs its length at worst."""
    per_file_us = task.worst_case_us - task.startup_us
    if left_us < 0 or per_file_us <= 0:
        return 1 if left_us < 0 else most
    return min(most, 1 + left_us // per_file_us)


def _declared(task: TableTask, allowed_us: int, most: int) -> int:
    """How many it may be by what an update costs at worst."""
    if task.worst_case_us > allowed_us:
        return 1
    per_file_us = task.worst_case_us - task.startup_us
    if per_file_us > 0:
        most = min(most, (allowed_us - task.startup_us) // per_file_us)
    return most


def batch_max_after(task: TableTask, job: Update, now: int) -> int:
    """How many files the next batch may have, after one that has ended well now."""
    allowed_us, took_us = job.worst_case_us, now - job.start
    if took_us <= allowed_us:
        return max(task.batch_max, 2 * job.updates)
    return max(1, job.updates * allowed_us // took_us)
