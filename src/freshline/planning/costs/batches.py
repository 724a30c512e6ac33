"""From the runs of a table to what a job of several files costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from freshline.planning.costs.fit import RUNS_LEAST, PastRun

# The latest runs of one file, and of several: a machine that others use as well is not always as fast, and
# where batches have become too costly the single files that go on tell when they are no longer.
_RUNS_MAX: Final = 20
# So many took no longer. A batch that does is followed by a smaller one (`kernel.tables.batches`), and the
# first runs after a start, which take several times as long, must not keep batches away.
_QUANTILE: Final = 0.85


class FittedBatches(NamedTuple):
    """A job of n files takes `startup_us` and `per_file_ns` for each at most, if they are like those before.

    `per_row_ns` is for files of more rows, as if rows were all that counts.
    """

    startup_us: int
    per_file_ns: int
    per_row_ns: int


def fit_single_files(runs: Sequence[PastRun]) -> FittedBatches | None:
    """Where no batch has run yet: each file of one is counted with what most took alone."""
    latest = [run for run in runs if run.files == 1][-_RUNS_MAX:]
    if len(latest) < RUNS_LEAST:
        return None
    took_us = sorted(run.duration_us for run in latest)
    per_file_ns = took_us[ceil(_QUANTILE * (len(took_us) - 1))] * 1_000
    rows = median(run.rows for run in latest)
    return FittedBatches(0, per_file_ns, ceil(per_file_ns / rows) if rows else 0)


def fit_batches(runs: Sequence[PastRun]) -> FittedBatches | None:
    """Of the latest runs with one file or several; None where these do not tell, being few or all alike.

    The line is robust: with the runs in the order of their files, the i-th of the lower half and the i-th of
    the upper make a pair, and the median of the pairs' slopes counts. It is raised to what most of them took.
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
