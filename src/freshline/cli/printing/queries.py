"""Continuous queries: their plan, and their results in a simulated run, as JSON and for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.cli.printing.grid import show_learned, show_rows
from freshline.cli.printing.kind import PrintedKind
from freshline.live.status.screen_table import Columns
from freshline.planning.plan.plan import Plan, PoolPlan, QueryPlan
from freshline.simulation.answers import QueryResult
from freshline.simulation.simulate import SimulationResult


class PrintedQueries(PrintedKind):
    """The continuous queries."""

    def plan_record(self, plan: Plan) -> dict[str, Any]:
        return {"queries": [_record(query) for query in plan.queries]} if plan.queries else {}

    def show_plan(self, screen: Console, plan: Plan, all_rows: bool) -> None:
        if not plan.queries:
            return
        columns: Columns[QueryPlan] = {
            "query": lambda query: query.name,
            "pool": lambda query: query.pool,
            ">stride": lambda query: format_duration(query.load.period_us),
            ">deadline": lambda query: format_duration(query.load.deadline_us),
            ">cost": lambda query: (
                format_duration(query.load.cost_us, up=True) + ("*" if query.learned_from_answers else "")
            ),
            ">budget": lambda query: format_duration(query.budget_us, down=True),
            ">reads": lambda query: "-" if query.keep is None else percentage(float(query.keep)),
            ">response ≤": lambda query: format_duration(query.response_bound_us, up=True),
            "": _verdict,
        }
        show_rows(screen, "Queries", plan.queries, all_rows, columns, lambda query: query.holds)
        show_learned(screen, "answers", [query.learned_from_answers for query in plan.queries])
        screen.print()

    def pool_verdict(self, plan: Plan, pool: PoolPlan) -> str | None:
        if not pool.queries:
            return None
        own = [query for query in plan.queries if query.pool == pool.name]
        refused = sum(query.refusal is not None for query in own)
        late = sum(not query.holds for query in own) - refused
        if refused:
            return f"[red]{refused} of {len(own)} refused[/]"
        if late:
            return f"[red]{late} of {len(own)} may be late[/]"
        sheds = sum(query.keep is not None and query.keep < 1 for query in own)
        return f"in time, {sheds} of {len(own)} shed" if sheds else "in time"

    def held(self, plan: Plan) -> str | None:
        return "all queries are answered in time" if plan.queries else None

    def failing(self, plan: Plan) -> str | None:
        late, number = sum(not query.holds for query in plan.queries), len(plan.queries)
        in_all = f"{number} {'query' if number == 1 else 'queries'}"
        return f"[red]Not in time[/]: {late} of {in_all}." if late else None

    def assumed(self, plan: Plan) -> Iterable[str]:
        policies = {plan.warehouse.pools[query.pool].policy for query in plan.queries}
        if not policies:
            return
        said = "Queries cost what is declared or learned, or what their operators do over the feeds' `rows`."
        if "lrm" in policies:
            said += " Under `lrm` no deadline is missed, whatever comes: less is read instead."
        others = sorted(policies - {"lrm"})
        if others:
            said += f" Under `{'` and `'.join(others)}` that is assumed of every window."
        yield said

    def result_record(self, result: SimulationResult) -> dict[str, Any]:
        if not result.queries:
            return {}
        return {
            "queries": [
                {
                    **_record(query.plan),
                    "iterations": query.iterations,
                    "misses": query.misses,
                    "completed": query.completed,
                    "keep_mean": query.keep_mean,
                    "error_share": query.error_share,
                    "response_max": seconds(query.response_max_us),
                }
                for query in result.queries
            ]
        }

    def show_result(self, screen: Console, result: SimulationResult, all_rows: bool) -> None:
        if not result.queries:
            return
        columns: Columns[QueryResult] = {
            "query": lambda query: query.plan.name,
            ">iterations": lambda query: str(query.iterations),
            ">misses": lambda query: str(query.misses),
            ">completed": lambda query: str(query.completed),
            ">reads": lambda query: "-" if query.keep_mean is None else percentage(query.keep_mean),
            ">error": lambda query: "-" if query.error_share is None else f"{query.error_share:.1%}",
            ">response": lambda query: format_duration(query.response_max_us),
            ">deadline": lambda query: format_duration(query.plan.load.deadline_us),
            "": _result_verdict,
        }
        show_rows(screen, "Queries", result.queries, all_rows, columns, lambda query: -query.misses)
        screen.print()

    def missed(self, result: SimulationResult) -> str | None:
        late = sum(query.misses > 0 for query in result.queries)
        return f"[red]Missed[/]: deadlines of {late} of the queries." if late else None


def _record(query: QueryPlan) -> dict[str, Any]:
    """A query's plan as JSON."""
    load, refusal, held_back = query.load, query.refusal, query.held_back
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
        "held_back_by": None if held_back is None else held_back.name,
        "behind": None if held_back is None else seconds(held_back.behind_us),
    }


def percentage(share: float) -> str:
    """A share in percent, never rounded up to 100 %."""
    return f"{int(share * 1000) / 10:g} %"


def _verdict(query: QueryPlan) -> str:
    if query.refusal is not None:
        return "[red]refused[/]"
    return "[green]holds[/]" if query.holds else "[red]may be late[/]"


def _result_verdict(query: QueryResult) -> str:
    if query.plan.refusal is not None:
        return "[red]refused[/]"
    return "[red]missed[/]" if query.misses else "[green]in time[/]"
