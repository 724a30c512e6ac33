"""The cost that the analysis uses."""

from __future__ import annotations

from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.tables import Table


def longest_update_us(table: Table, feed: Feed | None) -> int:
    """L_max: how much one job may have to load.

    It is the period by paper 004's Definition 4 and paper 001's Definition 8, except that a data file is
    indivisible. The first file may reach back to instant 0, and a later one may be late and follow one with
    an old newest record. A feed's lateness moves all of its timestamps alike. Windows are indivisible too.
    """
    if feed is None:
        align_us = table.align_us or 1
        return -(-table.period_us // align_us) * align_us
    if feed.arrival == "continuous":
        return table.period_us
    jitter_us = feed.jitter_us
    return max(feed.phase_us + jitter_us, table.period_us + jitter_us + feed.timestamp_jitter_us)


def worst_case_us(cost: Cost, length_us: int) -> int:
    """e = (1 + b)·(S + R·L), rounded up (paper 004, Definition 7 and section 5)."""
    rate, variability = cost.rate, cost.variability
    # In integers: a plan calls this for every table, and sums of `Fraction`s are slow.
    work = cost.startup_us * rate.denominator + rate.numerator * length_us
    numerator = (variability.denominator + variability.numerator) * work
    return max(1, -(-numerator // (variability.denominator * rate.denominator)))


def average_us(cost: Cost, length_us: int) -> int:
    """S + R·L, rounded up: paper 001's average-case provisioning."""
    work = cost.startup_us * cost.rate.denominator + cost.rate.numerator * length_us
    return max(1, -(-work // cost.rate.denominator))
