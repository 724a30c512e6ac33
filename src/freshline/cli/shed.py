"""`freshline shed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from freshline.base.duration import SECOND, format_duration
from freshline.cli.printing.grid import grid, tell
from freshline.cli.shared import JsonOption, console, print_json, read_input, working
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.analysis.utilization import fits, readable


def shed(
    queries: Annotated[
        Path, typer.Argument(help="A JSON file: queries with period, cost and weight.", metavar="FILE")
    ],
    as_json: JsonOption = False,
) -> None:
    """Compute what continuous queries on one track must shed so that all meet their deadlines.

    The file holds {"queries": [{"name": "a", "period": "2", "cost": "0.5", "weight": 5, "selectivity": "0.5",
    "tuples": 25000}]}, times in seconds; a query may have "deadline", "fixed", "keep_least" and "part".
    Numbers may be written as decimal strings.

    Instead of "cost", "fixed", "selectivity" and "tuples" a query may have "operators" over "streams":
    {"streams": {"s1": {"rate": 12500}}, "queries": [{"name": "a", "period": 2, "weight": 5, "operators":
    {"op": "select", "selectivity": "0.5", "input": {"stream": "s1"}}}]}. Others are {"op": "project" or
    "aggregate", "input": …} and {"op": "join", "selectivity": "0.5", "inputs": [left, right]}; "window" is
    the period unless it is given.

    Exit code 1 where a query is refused: it does not fit even at the least costs.

    Example: freshline shed queries.json --json
    """
    # Loading the solver takes longer than other commands take to run.
    from freshline.planning.analysis.query_set import answer, parse_query_set

    loads = read_input(queries, parse_query_set)
    with working("shedding"):
        result = answer(loads)
    if as_json:
        print_json(result)
    else:
        _show(console(), loads, result)
    if result["refused"]:
        raise typer.Exit(1)


def _show(screen: Console, loads: list[QueryLoad], result: dict[str, Any]) -> None:
    costs, periods = [load.cost_us for load in loads], [load.period_us for load in loads]
    used = readable(result["utilization"], 1, fits(costs, periods, 1), digits=4)
    verdict = "All deadlines are met" if result["schedulable"] else "Some deadline is missed"
    tell(screen, f"Utilisation {used}. {verdict} at full costs.")
    for refusal in result["refused"]:
        least = refusal["period_least"]
        stride = "no period up to an hour fits"
        if least is not None:
            stride = f"a period of {least:g} s, with a deadline as long, would fit"
        tell(screen, f"{refusal['name']} is refused: {refusal['reason']}; {stride}.")
    rules = result["rules"]
    errors = ", ".join(f"{rule} {outcome['weighted_error']:,.0f}" for rule, outcome in rules.items())
    tell(screen, f"Weighted error a second: {errors}.")
    title = "What is kept of each window, and the response time by least-error"
    table = grid(title, "query", ">period", ">full cost", *(f">{rule}" for rule in rules), ">response")
    by_name = {load.name: load for load in loads}
    for row, query in enumerate(rules["least-error"]["queries"]):
        load = by_name[query["name"]]
        table.add_row(
            load.name,
            format_duration(load.period_us),
            format_duration(load.cost_us, up=True),
            *(f"{outcome['queries'][row]['keep']:.1%}" for outcome in rules.values()),
            _response(query["response_time"]),
        )
    if table.row_count:
        screen.print(table)


def _response(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(round(seconds * SECOND), up=True)
