"""Adds learned costs to a warehouse, for tables and steps without a declared one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Final, Protocol

from freshline.base.duration import SECOND
from freshline.definitions.sections.cost import Cost
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.bounds import longest_update_us
from freshline.planning.costs.cores import SparkCores, spark_cores
from freshline.planning.costs.fit import RUNS_LEAST, FittedCost, PastRun, fit
from freshline.planning.costs.step_rows import rows_of_steps

# Kernel and plan use whole numbers: small denominators keep them small.
_RATE_GRAIN: Final = 1_000_000
_VARIABILITY_GRAIN: Final = 1_000


class RunHistory(Protocol):
    """The history of the runs of tables."""

    def runs(self, table: str) -> Sequence[PastRun]: ...


@dataclass(frozen=True, slots=True)
class LearnedCosts:
    """A warehouse, and by table or query the number of runs that its cost was learned from."""

    warehouse: Warehouse
    runs: Mapping[str, int]


def learned_costs(warehouse: Warehouse, history: RunHistory) -> LearnedCosts:
    """Adds the cost of every table and step that declares none and has run often enough.

    A table that is computed whole costs by the rows that its newest run read.
    """
    tables = dict(warehouse.tables)
    runs: dict[str, int] = {}
    sparks = spark_cores(warehouse)
    for name, table in warehouse.tables.items():
        if table.cost is not None and not table.is_whole:
            continue
        feed = None if table.feed is None else warehouse.feeds[table.feed]
        spark = sparks.get(warehouse.pools[table.pool].node)
        past = _while_busy(history.runs(name), [spark] if spark else [])
        rows_now = past[-1].rows if past else 0
        if table.cost is not None:
            tables[name] = replace(table, cost=table.cost.sized(rows_now))
        elif table.is_whole:
            fitted = fit_step(past, Fraction(rows_now))
            if fitted is not None:
                tables[name] = replace(table, cost=step_cost_of(fitted).sized(rows_now))
                runs[name] = fitted.runs
        else:
            fitted = fit(_alone(past), longest_update_us(table, feed))
            if fitted is not None:
                tables[name] = replace(table, cost=cost_of(fitted))
                runs[name] = fitted.runs
    steps = dict(warehouse.steps)
    rows = rows_of_steps(warehouse)
    for name, step in warehouse.steps.items():
        if step.cost is not None:
            continue
        of_nodes = [sparks[node] for node in warehouse.nodes_of(name) if node in sparks]
        fitted = fit_step(_while_busy(history.runs(name), of_nodes), rows[name].read)
        if fitted is not None:
            steps[name] = replace(step, cost=step_cost_of(fitted))
            runs[name] = fitted.runs
    if tables == warehouse.tables and not runs:
        return LearnedCosts(warehouse, runs)
    return LearnedCosts(replace(warehouse, tables=tables, steps=steps), runs)


def fit_step(runs: Sequence[PastRun], rows_most: Fraction | None) -> FittedCost | None:
    """The cost of a step for up to that many rows; None: for any number.

    The length of a step is its rows. Without a limit on rows it costs what its runs did, each with its rows:
    a cost per row would be of no use.
    """
    if rows_most is None:
        return fit([run._replace(rows=1, length_us=1) for run in runs], 0)
    return fit([run._replace(length_us=run.rows) for run in runs], ceil(rows_most))


def step_cost_of(fitted: FittedCost) -> Cost:
    """The cost of a step by its rows, rounded up."""
    raised = max(1.0, (1 + fitted.variability) / 2)
    return Cost(
        ceil(fitted.startup_us * raised),
        Fraction(0),
        min(Fraction(1), Fraction(ceil(fitted.variability * _VARIABILITY_GRAIN), _VARIABILITY_GRAIN)),
        Fraction(ceil(fitted.us_per_row * raised * _RATE_GRAIN), _RATE_GRAIN),
        loaded=True,
    )


def _while_busy(runs: Sequence[PastRun], sparks: Sequence[SparkCores]) -> Sequence[PastRun]:
    """The runs as they would have been with all tracks busy, on the slowest of these Sparks."""
    if not sparks:
        return runs
    return [
        run._replace(duration_us=ceil(run.duration_us * max(_slower(run, spark) for spark in sparks)))
        for run in runs
    ]


def _slower(run: PastRun, spark: SparkCores) -> Fraction:
    tasks = run.tasks or None
    return max(Fraction(1), spark.factor(tasks) / spark.factor(tasks, run.busy or 1))


def _alone(runs: Sequence[PastRun]) -> Sequence[PastRun]:
    """The runs of at most one file, if they are enough: several files together have another cost."""
    alone = [run for run in runs if run.files < 2]
    return alone if len(alone) >= RUNS_LEAST else runs


def cost_of(fitted: FittedCost) -> Cost:
    """The cost by the length of an update instead of its rows, as the plan uses it; rounded up."""
    rate = fitted.us_per_row * fitted.rows_per_second / SECOND
    # A variability is at most 100 % in both directions: the excess raises the whole cost.
    raised = max(1.0, (1 + fitted.variability) / 2)
    return Cost(
        ceil(fitted.startup_us * raised),
        Fraction(ceil(rate * raised * _RATE_GRAIN), _RATE_GRAIN),
        min(Fraction(1), Fraction(ceil(fitted.variability * _VARIABILITY_GRAIN), _VARIABILITY_GRAIN)),
        loaded=True,
    )
