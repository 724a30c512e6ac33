"""Learns the cost of a table from its runs: a start-up, a cost per row, and the variability above that.

It uses rows, not the update length L, because L is nearly constant in normal running; rows follow from L by
the rate of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from statistics import median
from typing import Final, NamedTuple

from freshline.base.duration import SECOND

RUNS_LEAST: Final = 3
_QUANTILE: Final = 0.95
_CONFIDENCE_Z: Final = 1.645  # one-sided 95 % of the normal distribution
_ALIKE: Final = 1.1  # rows that differ by at most this factor do not show the cost per row


class PastRun(NamedTuple):
    """A finished job, as far as its cost is concerned."""

    started: int  # µs since the Unix epoch
    duration_us: int
    rows: int
    length_us: int  # the update length L
    files: int
    busy: int = 0  # the tracks that were busy meanwhile, its own included; 0 if unknown
    tasks: int = 0  # the most tasks that it ran at once; 0 if unknown


@dataclass(frozen=True, slots=True)
class FittedCost:
    """An update of r rows takes about `startup_us + us_per_row·r`, and at worst (1 + variability) of it."""

    startup_us: int
    us_per_row: float
    rows_per_second: float  # of data: an update of length L loads that many rows for each second of L
    variability: float
    runs: int  # that it was learned from


def fit(runs: Sequence[PastRun], longest_us: int | None = None) -> FittedCost | None:
    """The cost of updates up to a length of `longest_us` (default: the usual and longer); None for < 3 runs.

    All lines that the runs allow meet in the usual update (median rows, median time). A longer update uses
    the steepest line and a shorter one the flattest, so that neither is underestimated. If rows are alike, or
    runs fewer than ten, only S ≥ 0 and a cost per row ≥ 0 are known. Then the steepest line is all cost per
    row, and the flattest all start-up.

    (1 + variability) is the upper quantile of actual over fitted, with the fit from the rows and, as in the
    plan, from L. An update shorter than usual is compared with the usual one, as the plan uses the longest
    for it too. n runs have not shown the worst yet: the least variability is 1/n.
    """
    if len(runs) < RUNS_LEAST:
        return None
    rows_usual = median(run.rows for run in runs)
    lengths = [run.length_us for run in runs if run.length_us > 0]
    rows_per_us = median([run.rows / run.length_us for run in runs if run.length_us > 0] or [0.0])
    length_usual = median(lengths or [0])
    if longest_us is None:
        longest_us = ceil(length_usual)
        longer = rows_per_us > 0
    else:
        longer = rows_per_us * longest_us > rows_usual
    startup, per_row = _line(runs, rows_usual, longer)
    rows_least = min(rows_usual, rows_per_us * longest_us)
    length_least = min(length_usual, longest_us)
    rate = per_row * rows_per_us
    worst = max(
        1 + 1 / len(runs),
        upper([run.duration_us / (startup + per_row * max(run.rows, rows_least)) for run in runs]),
        upper([run.duration_us / (startup + rate * max(run.length_us, length_least)) for run in runs]),
    )
    return FittedCost(ceil(startup), per_row, rows_per_us * SECOND, worst - 1, len(runs))


def upper(values: Sequence[float]) -> float:
    """The 95 % quantile, but of fewer than 40 values the second largest.

    A table's first run after a start warms up the JVM and takes several times as long as the next: it must
    not be the worst case while runs are few.
    """
    rank = min(ceil(_QUANTILE * len(values)), len(values) - 1)
    return sorted(values)[max(rank, 1) - 1]


def _line(runs: Sequence[PastRun], rows_usual: float, longer: bool) -> tuple[float, float]:
    """Start-up (at least 1 µs) and cost per row of the steepest or the flattest line."""
    flattest, middle, steepest = _slopes(runs) or (0.0, 0.0, inf)
    usual_us = max(1.0, median(run.duration_us - middle * (run.rows - rows_usual) for run in runs))
    # With a steeper line an update without rows would take negative time.
    proportional = usual_us / rows_usual if rows_usual else inf
    per_row = min(steepest if longer else flattest, proportional)
    if per_row == inf:
        per_row = 0.0
    return max(1.0, usual_us - per_row * rows_usual), per_row


def slope_of(runs: Sequence[PastRun]) -> float | None:
    """The median cost per row; None if the runs do not show it."""
    slopes = _slopes(runs)
    return None if slopes is None else slopes[1]


def _slopes(runs: Sequence[PastRun]) -> tuple[float, float, float] | None:
    """The cost per row: median and its 95 % limits, all ≥ 0; None if the runs do not show it.

    Theil's incomplete method: with the runs sorted by rows, the i-th of the lower half and the i-th of the
    upper make a pair. A tenth of gross outliers spoils at most a fifth of the pairs. Every run is in one
    pair, so the slopes are independent and the sign test gives the limits of their median.
    """
    ordered = sorted(runs, key=_rows)
    tail = len(ordered) // 20
    if ordered[-1 - tail].rows <= _ALIKE * ordered[tail].rows:
        return None
    half = len(ordered) // 2
    slopes = sorted(
        (high.duration_us - low.duration_us) / (high.rows - low.rows)
        for low, high in zip(ordered[:half], ordered[-half:], strict=True)
        if high.rows > low.rows
    )
    count = len(slopes)
    rank = ceil((count + 1 + _CONFIDENCE_Z * sqrt(count)) / 2)
    if rank > count:
        return None
    return max(0.0, slopes[count - rank]), max(0.0, median(slopes)), max(0.0, slopes[rank - 1])


def _rows(run: PastRun) -> int:
    return run.rows
