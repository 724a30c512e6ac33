"""Tables: their plan, and their results in a simulated run, as JSON and for people."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from typing import Any

from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.cli.printing.grid import note, show_learned, show_rows
from freshline.cli.printing.kind import PrintedKind
from freshline.cli.printing.sparks import cores_assumed
from freshline.cli.printing.whole_tables import show_whole_tables, whole_record
from freshline.definitions.language.policies import POLICIES
from freshline.kernel.recovery.terms import Recovery
from freshline.live.status.screen_table import Columns
from freshline.planning.plan.advice import counted
from freshline.planning.plan.plan import Plan, PoolPlan, TablePlan
from freshline.simulation.simulate import SimulationResult
from freshline.simulation.tables import TableResult


class PrintedTables(PrintedKind):
    """The tables that have a period."""

    def plan_record(self, plan: Plan) -> dict[str, Any]:
        return {"tables": [_record(plan, table) for table in plan.tables]}

    def show_plan(self, screen: Console, plan: Plan, all_rows: bool) -> None:
        if not plan.pools:
            return
        adaptive = any(POLICIES[pool.policy].adaptive for pool in plan.pools)
        columns: Columns[TablePlan] = {
            "table": lambda table: table.name,
            "pool": lambda table: table.pool,
            ">period": lambda table: format_duration(table.period_us),
            ">cost ≤": lambda table: (
                format_duration(table.cost_us, up=True) + ("*" if table.learned_from_runs else "")
            ),
            ">response ≤": lambda table: format_duration(table.response_bound_us, up=True),
            ">staleness ≤": lambda table: format_duration(table.staleness_bound_us, up=True),
            ">target": lambda table: format_duration(table.target_lag_us),
            **({">recovery ≤": lambda table: _recovery(plan, table)} if adaptive else {}),
            "": _verdict,
        }
        show_rows(screen, "Tables", plan.tables, all_rows, columns, lambda table: table.holds)
        show_learned(screen, "runs", [table.learned_from_runs for table in plan.tables])
        show_whole_tables(screen, plan)
        if adaptive:
            note(
                screen,
                "recovery: until a late table has caught up after an outage of its feed of the length λ, "
                "counted from its first release with the recovery period.",
            )
        screen.print()

    def pool_notes(self, pool: PoolPlan) -> Iterable[str]:
        """How long batches may block other tables, if there are any and a bound counts it."""
        if pool.blocking_most_us is None and not pool.blocking_us:
            return
        said = f"blocking {format_duration(pool.blocking_us)}"
        if pool.blocking_most_us is not None:
            said += f", all targets allow {format_duration(pool.blocking_most_us, down=True)}"
        if pool.batch_limit_us is not None:
            said += f"; a batch takes {format_duration(pool.batch_limit_us, down=True)} at most"
        yield said

    def held(self, plan: Plan) -> str | None:
        targets = sum(table.target_lag_us is not None for table in plan.tables)
        if not targets:
            return "all tables have a bound (no targets declared)" if plan.tables else None
        proven = "expected to be kept" if plan.expected else "proven"
        return f"all {targets} targets are {proven}" if targets > 1 else f"the one target is {proven}"

    def failing(self, plan: Plan) -> str | None:
        failing = sum(not table.holds for table in plan.tables)
        return (
            f"[red]Not proven[/] for {failing} of {counted(len(plan.tables), 'table')}." if failing else None
        )

    def assumed(self, plan: Plan) -> Iterable[str]:
        if plan.expected:
            yield (
                "Expected, not proven: pools provisioned for what updates cost on average, and what reads "
                "from them; updates that cost more can exceed these bounds."
            )
        yield (
            "Assumed: no update costs more than declared or learned, feeds deliver as declared, the tracks "
            f"stay{cores_assumed(plan)}."
        )

    def result_record(self, result: SimulationResult) -> dict[str, Any]:
        return {
            "tables": [
                {
                    **_record(result.plan, table.plan),
                    "staleness_max": seconds(table.staleness_max_us),
                    "lag_max": seconds(table.lag_max_us),
                    "jobs": table.jobs,
                    "misses": table.misses,
                    "failed": table.failed,
                    "state": table.state,
                    "recovered_at": seconds(table.recovered_at_us),
                    "recovery": recovery_record(table.recovery),
                }
                for table in result.tables
            ]
        }

    def show_result(self, screen: Console, result: SimulationResult, all_rows: bool) -> None:
        if not result.tables:
            return
        title = f"{result.plan.warehouse.name} over {format_duration(result.end)}, seed {result.seed}"
        of_faults: Columns[TableResult] = {
            ">recovered at": lambda row: format_duration(row.recovered_at_us),
            "state": lambda row: row.state,
        }
        columns: Columns[TableResult] = {
            "table": lambda row: row.plan.name,
            ">staleness": lambda row: format_duration(row.staleness_max_us),
            ">bound": lambda row: format_duration(row.plan.staleness_bound_us, up=True),
            ">of bound": _of_bound,
            ">target": lambda row: format_duration(row.plan.target_lag_us),
            ">lag": lambda row: format_duration(row.lag_max_us),
            ">jobs": lambda row: str(row.jobs),
            ">misses": lambda row: str(row.misses),
            **(of_faults if result.has_faults else {}),
            "": _result_verdict,
        }
        show_rows(screen, title, result.tables, all_rows, columns, _urgency)
        screen.print()

    def missed(self, result: SimulationResult) -> str:
        exceeded = sum(row.exceeded_target for row in result.tables)
        if not exceeded:
            return "[green]Kept[/]: no target was exceeded."
        # The plan does not know about simulated faults.
        advice = "" if result.has_faults else " `freshline plan` says what would help."
        return f"[red]Exceeded[/]: {exceeded} targets.{advice}"


def _record(plan: Plan, table: TablePlan) -> dict[str, Any]:
    line = _recovery_line(plan, table)
    recovers = table.name in plan.warehouse.released_by_files
    return {
        "name": table.name,
        "pool": table.pool,
        "period": seconds(table.period_us),
        "cost": seconds(table.cost_us),
        "cost_source": "learned" if table.learned_from_runs else "declared",
        "response_bound": seconds(table.response_bound_us),
        "staleness_bound": seconds(table.staleness_bound_us),
        "target_lag": seconds(table.target_lag_us),
        "holds": table.holds,
        "expected": table.expected,
        "recovery_period": seconds(table.recovery_period_us) if recovers else None,
        "recovery_time": None if line is None else {"base": seconds(line[0]), "per_second": float(line[1])},
        **whole_record(plan, table.name),
    }


def _recovery_line(plan: Plan, table: TablePlan) -> tuple[int, Fraction] | None:
    """The recovery time x(λ) = a + b·λ after an outage of its feed: a in µs, and b.

    None if there is no such statement: it exists only for base tables on files (paper 001, Theorem 4).
    """
    feed_name = plan.warehouse.tables[table.name].feed
    if feed_name is None or table.recovery_period_us is None:
        return None
    feed = plan.warehouse.feeds[feed_name]
    base_us = table.recovery_time_us(0, feed.jitter_us)
    if feed.arrival != "files" or base_us is None:
        return None
    return base_us, Fraction(table.recovery_period_us, table.period_us - table.recovery_period_us)


def _recovery(plan: Plan, table: TablePlan) -> str:
    """x(λ), rounded up."""
    line = _recovery_line(plan, table)
    if line is None:
        return "-"
    base_us, per_second = line
    return f"{format_duration(base_us, up=True)} + {ceil(per_second * 100) / 100:g} λ"


def _verdict(table: TablePlan) -> str:
    if not table.holds:
        return "[red]not proven[/]"
    return "[yellow]expected[/]" if table.expected else "[green]holds[/]"


def recovery_record(recovery: Recovery | None) -> dict[str, Any] | None:
    """The last recovery of a table or an output as JSON."""
    if recovery is None:
        return None
    return {
        "entered": seconds(recovery.entered),
        "due": seconds(recovery.due),
        "ended": seconds(recovery.ended),
        "in_time": recovery.in_time,
    }


def _of_bound(row: TableResult) -> str:
    bound_us = row.plan.staleness_bound_us
    return "-" if bound_us is None else f"{row.staleness_max_us / bound_us:.0%}"


def _result_verdict(row: TableResult) -> str:
    if row.exceeded_target:
        return "[red]exceeded[/]"
    return "" if row.plan.target_lag_us is None else "[green]kept[/]"


def _urgency(row: TableResult) -> tuple[bool, float]:
    """Exceeded targets first, then the tables closest to their bounds."""
    bound_us = row.plan.staleness_bound_us
    return (not row.exceeded_target, -row.staleness_max_us / bound_us if bound_us else 0.0)
