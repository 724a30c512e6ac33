"""The plan of continuous queries: as JSON, and for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.cli.shared import ROWS_MAX, grid, show_learned, show_rest
from freshline.planning.plan.plan import Plan, PoolPlan, QueryPlan
from freshline.simulation.answers import QueryResult


def query_record(query: QueryPlan) -> dict[str, Any]:
    """A query's plan as JSON."""
    load, refusal = query.load, query.refusal
    return {
        "name": query.name,
        "pool": query.pool,
        "track": query.track,
        "stride": seconds(load.period_us),
        "deadline": seconds(load.deadline_us),
        "part": seconds(load.part_us),
        "cost": seconds(load.cost_us),
        "learned_from_answers": query.learned_from_answers,
        "fixed": seconds(load.fixed_us),
        "budget": seconds(query.budget_us),
        "keep": None if query.keep is None else float(query.keep),
        "response_bound": seconds(query.response_bound_us),
        "holds": query.holds,
        "reason": None if refusal is None else refusal.reason,
        "period_least": None if refusal is None else seconds(refusal.period_least_us),
    }


def show_queries(screen: Console, plan: Plan, all_rows: bool) -> None:
    queries = grid(
        "Queries",
        {
            "query": False,
            "pool": False,
            "stride": True,
            "deadline": True,
            "cost": True,
            "budget": True,
            "reads": True,
            "response ≤": True,
            "": False,
        },
    )
    for query in _chosen(plan.queries, all_rows):
        load = query.load
        queries.add_row(
            query.name,
            query.pool,
            format_duration(load.period_us),
            format_duration(load.deadline_us),
            format_duration(load.cost_us, up=True) + ("*" if query.learned_from_answers else ""),
            format_duration(query.budget_us, down=True),
            "-" if query.keep is None else percentage(float(query.keep)),
            format_duration(query.response_bound_us, up=True),
            _verdict(query),
        )
    screen.print(queries)
    show_rest(screen, len(plan.queries), all_rows)
    show_learned(screen, "answers", [query.learned_from_answers for query in plan.queries])
    screen.print()


def simulated_query_record(query: QueryResult) -> dict[str, Any]:
    """The results of a query in a simulated run, as JSON."""
    return {
        **query_record(query.plan),
        "iterations": query.iterations,
        "misses": query.misses,
        "completed": query.completed,
        "keep_mean": query.keep_mean,
        "error_share": query.error_share,
        "response_max": seconds(query.response_max_us),
    }


def show_simulated_queries(screen: Console, queries: Sequence[QueryResult], all_rows: bool) -> None:
    table = grid(
        "Queries",
        {
            "query": False,
            "iterations": True,
            "misses": True,
            "completed": True,
            "reads": True,
            "error": True,
            "response": True,
            "deadline": True,
            "": False,
        },
    )
    rows = list(queries)
    if not all_rows and len(rows) > ROWS_MAX:
        rows = sorted(rows, key=lambda query: -query.misses)[:ROWS_MAX]
    for query in rows:
        verdict = "[red]missed[/]" if query.misses else "[green]in time[/]"
        table.add_row(
            query.plan.name,
            str(query.iterations),
            str(query.misses),
            str(query.completed),
            "-" if query.keep_mean is None else percentage(query.keep_mean),
            "-" if query.error_share is None else f"{query.error_share:.1%}",
            format_duration(query.response_max_us),
            format_duration(query.plan.load.deadline_us),
            "[red]refused[/]" if query.plan.refusal else verdict,
        )
    screen.print(table)
    show_rest(screen, len(queries), all_rows)
    screen.print()


def pool_verdict(plan: Plan, pool: PoolPlan) -> str:
    """The verdict on a pool of queries."""
    own = [query for query in plan.queries if query.pool == pool.name]
    refused = sum(query.refusal is not None for query in own)
    late = sum(not query.holds for query in own) - refused
    if refused:
        return f"[red]{refused} of {len(own)} refused[/]"
    if late:
        return f"[red]{late} of {len(own)} may be late[/]"
    sheds = sum(query.keep is not None and query.keep < 1 for query in own)
    return f"in time, {sheds} of {len(own)} shed" if sheds else "in time"


def percentage(share: float) -> str:
    """A share in percent, never rounded up to 100 %."""
    return f"{int(share * 1000) / 10:g} %"


def _chosen(queries: Sequence[QueryPlan], all_rows: bool) -> list[QueryPlan]:
    if all_rows or len(queries) <= ROWS_MAX:
        return list(queries)
    return sorted(queries, key=lambda query: query.holds)[:ROWS_MAX]


def _verdict(query: QueryPlan) -> str:
    if query.refusal is not None:
        return "[red]refused[/]"
    return "[green]holds[/]" if query.holds else "[red]may be late[/]"
