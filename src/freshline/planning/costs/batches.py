"""Learns the cost of a job of several files from the runs of a table."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from freshline.planning.costs.fit import RUNS_LEAST, PastRun

# The number of latest runs of one file, and of several. A shared machine is not always as fast; after batches
# have become too costly, single files show when they no longer are.
_RUNS_MAX: Final = 20
# The share of runs that took no longer. A longer batch is followed by a smaller one
# (`kernel.tables.batches`). The slow first runs after a start must not prevent batches.
_QUANTILE: Final = 0.85


class FittedBatches(NamedTuple):
    """A job of n files takes at most `startup_us` and `per_file_ns` for each, if files are as before.

    `per_row_ns` is for files of more rows, as if only rows counted.
    """

    startup_us: int
    per_file_ns: int
    per_row_ns: int


def fit_single_files(runs: Sequence[PastRun]) -> FittedBatches | None:
    """If no batch has run yet: each of its files counts with what most files took alone."""
    latest = [run for run in runs if run.files == 1][-_RUNS_MAX:]
    if len(latest) < RUNS_LEAST:
        return None
    took_us = sorted(run.duration_us for run in latest)
    per_file_ns = took_us[ceil(_QUANTILE * (len(took_us) - 1))] * 1_000
    rows = median(run.rows for run in latest)
    return FittedBatches(0, per_file_ns, ceil(per_file_ns / rows) if rows else 0)


def fit_batches(runs: Sequence[PastRun]) -> FittedBatches | None:
    """The fit to the latest runs of one file or several; None if these are too few or too similar.

    The line is robust: runs are sorted by files, the i-th of the lower half and the i-th of the upper make a
    pair, and the median of the pairs' slopes counts. The line is raised to cover most runs.
    """
    several = [run for run in runs if run.files > 1][-_RUNS_MAX:]
    latest = [run for run in runs if run.files == 1][-_RUNS_MAX:] + several
    if len(several) < RUNS_LEAST:
        return None
    ordered = sorted(latest, key=lambda run: run.files)
    half = len(ordered) // 2
    slopes = [
        (high.duration_us - low.duration_us) / (high.files - low.files)
        for low, high in zip(ordered[:half], ordered[-half:], strict=True)
        if high.files >= 2 * low.files
    ]
    if len(slopes) < RUNS_LEAST:
        return None
    per_file = max(0.0, median(slopes))
    startup = max(1.0, median(run.duration_us - per_file * run.files for run in latest))
    ratios = sorted(run.duration_us / (startup + per_file * run.files) for run in latest)
    worst = max(1.0, ratios[int(_QUANTILE * (len(ratios) - 1))])
    per_file_ns = ceil(per_file * worst * 1_000)
    rows = median(run.rows / run.files for run in several)
    return FittedBatches(ceil(startup * worst), per_file_ns, ceil(per_file_ns / rows) if rows else 0)
