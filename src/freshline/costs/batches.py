"""From the runs of a table to what a job of several files costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import median
from typing import Final, NamedTuple

from freshline.costs.fit import RUNS_LEAST, PastRun, upper

# The latest runs: a machine that others use as well is not always as fast.
_RUNS_MAX: Final = 60


class FittedBatches(NamedTuple):
    """A job of n files takes `startup_us` and `per_file_ns` for each at worst, if they are like those before.

    `per_row_ns` is for files of more rows, as if rows were all that counts.
    """

    startup_us: int
    per_file_ns: int
    per_row_ns: int


def fit_batches(runs: Sequence[PastRun]) -> FittedBatches | None:
    """Of the latest runs with one file or several; None where these do not tell, being few or all alike.

    The line is robust: with the runs in the order of their files, the i-th of the lower half and the i-th of
    the upper make a pair, and the median of the pairs' slopes counts. It is
    raised to what runs took at worst.
    """
    latest = [run for run in runs if run.files > 0][-_RUNS_MAX:]
    several = [run for run in latest if run.files > 1]
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
    worst = max(1.0, upper([run.duration_us / (startup + per_file * run.files) for run in latest]))
    per_file_ns = ceil(per_file * worst * 1_000)
    rows = median(run.rows / run.files for run in several)
    return FittedBatches(ceil(startup * worst), per_file_ns, ceil(per_file_ns / rows) if rows else 0)
