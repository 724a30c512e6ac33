"""Batches: how many files of a backlog one job takes.

docs/batches.md defines how long such a job may be. This module turns that into a number of files, by their
known costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from freshline.kernel.tables.events import DataFile
    from freshline.kernel.tables.task import TableTask
    from freshline.kernel.tables.update import Update


class BatchCost(NamedTuple):
    """The worst-case cost of a job of several files, as learned from runs.

    A file costs `per_file_ns`, or `per_row_ns` for each of its rows if that is more: runs with files of one
    size cannot tell which of the two applies. If no job had several files, `startup_us` is 0, and only the
    cost of a single file is known.
    """

    startup_us: int
    per_file_ns: int
    per_row_ns: int

    def fitting(self, files: Sequence[DataFile], allowed_us: int) -> int:
        """How many of these files, the first ones, fit into a job of that cost."""
        left_ns = (allowed_us - self.startup_us) * 1_000
        for count, file in enumerate(files):
            left_ns -= max(self.per_file_ns, self.per_row_ns * file.rows)
            if left_ns < 0:
                return count
        return len(files)


def fitting(task: TableTask, allowed_us: int) -> int:
    """How many of a table's waiting files, the oldest first, one job may take; at least one.

    It is at most twice the largest batch that succeeded, as costs are known well only up to there. If the
    cost of batches is unknown, every file costs what it costs alone, less the start-up.
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
    """How many files fit if one leaves that much time: each other has its worst-case cost."""
    per_file_us = task.worst_case_us - task.startup_us
    if left_us < 0 or per_file_us <= 0:
        return 1 if left_us < 0 else most
    return min(most, 1 + left_us // per_file_us)


def _declared(task: TableTask, allowed_us: int, most: int) -> int:
    """How many files fit by the worst-case cost of an update."""
    if task.worst_case_us > allowed_us:
        return 1
    per_file_us = task.worst_case_us - task.startup_us
    if per_file_us > 0:
        most = min(most, (allowed_us - task.startup_us) // per_file_us)
    return most


def batch_max_after(task: TableTask, job: Update, now: int) -> int:
    """How many files the next batch may have, after a batch that has succeeded now."""
    allowed_us, took_us = job.worst_case_us, now - job.start
    if took_us <= allowed_us:
        return max(task.batch_max, 2 * job.updates)
    return max(1, job.updates * allowed_us // took_us)
