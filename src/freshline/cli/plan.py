"""`freshline plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path

import typer
from rich.console import Console

from freshline.base.duration import format_duration
from freshline.base.errors import DefinitionErrors
from freshline.base.printable import printable
from freshline.cli.printing.outputs import output_record, show_outputs, with_placement
from freshline.cli.printing.queries import pool_verdict, query_record, show_queries
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    ROWS_MAX,
    AllOption,
    JsonOption,
    ProjectOption,
    console,
    grid,
    load_with_costs,
    plan_record,
    print_json,
    project_folder,
    recovery_line,
    show_learned,
    show_rest,
    storage_path,
    working,
)
from freshline.definitions.language.policies import POLICIES
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.warehouse import Warehouse
from freshline.landing.directories import landing_directories, missing_directories
from freshline.planning.analysis.utilization import readable
from freshline.planning.plan.advice import counted
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan, PoolPlan, TablePlan


def plan(
    project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False, all_rows: AllOption = False
) -> None:
    """Prove, before anything runs, how stale each table can become, and which queries are in time.

    Example: freshline plan -p examples/network/freshline.yml
    """
    warehouse, learned = load_with_costs(project)
    landing = landing_directories(warehouse, project_folder(project), storage_path(project, warehouse))
    to_mend = _before_a_run(warehouse, landing)
    with working("planning"):
        verdict = make_plan(warehouse, learned)
    verdict = with_placement(verdict, learned)
    if as_json:
        record = plan_record(verdict)
        if verdict.queries:
            record["queries"] = [query_record(query) for query in verdict.queries]
        if verdict.outputs:
            record["outputs"] = [output_record(output) for output in verdict.outputs]
        print_json(record | ({"before_a_run": to_mend} if to_mend else {}))
    else:
        screen = console()
        show_plan(screen, verdict, all_rows)
        for number, sentence in enumerate(to_mend):
            if not number:
                screen.print("[yellow]Before a run[/] mend this:", highlight=False)
            screen.print(f"  - {printable(sentence)}", highlight=False, markup=False)
    raise typer.Exit(0 if verdict.holds else 1)


def _before_a_run(warehouse: Warehouse, landing: Mapping[str, Path]) -> list[str]:
    """All that `run` would say of the file before it starts Spark; nothing of a file without any `path`."""
    if not landing:
        return []
    found = missing_directories(warehouse, landing)
    try:
        check_runnable(warehouse)
    except DefinitionErrors as errors:
        found = [*map(str, errors.errors), *found]
    return [sentence.removesuffix(".") for sentence in found]


def show_plan(screen: Console, plan: Plan, all_rows: bool) -> None:
    if plan.pools:
        _show_pools(screen, plan)
        screen.print()
        _show_tables(screen, plan, all_rows)
        screen.print()
    if plan.outputs:
        show_outputs(screen, plan, all_rows)
    if plan.queries:
        show_queries(screen, plan, all_rows)
    _show_verdict(screen, plan)


def _show_pools(screen: Console, plan: Plan) -> None:
    pools = grid(
        f"Pools of {plan.warehouse.name}",
        {
            "pool": False,
            "policy": False,
            "tracks": True,
            "utilisation": True,
            "least tracks": True,
            "verdict": False,
        },
    )
    for pool in plan.pools:
        pools.add_row(
            pool.name,
            pool.policy,
            str(pool.tracks),
            readable(pool.utilization, pool.tracks, pool.fits, digits=3),
            "-" if pool.tracks_least is None else str(pool.tracks_least),
            _verdict(plan, pool),
        )
    screen.print(pools)
    for pool in plan.pools:
        _show_clusters(screen, pool)
        _show_blocking(screen, pool)
        _show_classes(screen, pool)
        _show_unbounded(screen, plan, pool)


def _show_tables(screen: Console, plan: Plan, all_rows: bool) -> None:
    adaptive = any(POLICIES[pool.policy].adaptive for pool in plan.pools)
    tables = grid(
        "Tables",
        {
            "table": False,
            "pool": False,
            "period": True,
            "cost ≤": True,
            "response ≤": True,
            "staleness ≤": True,
            "target": True,
            **({"recovery ≤": True} if adaptive else {}),
            "": False,
        },
    )
    for table in chosen_rows(plan.tables, all_rows):
        tables.add_row(
            table.name,
            table.pool,
            format_duration(table.period_us),
            format_duration(table.cost_us, up=True) + ("*" if table.learned_from_runs else ""),
            format_duration(table.response_bound_us, up=True),
            format_duration(table.staleness_bound_us, up=True),
            format_duration(table.target_lag_us),
            *((_recovery(plan, table),) if adaptive else ()),
            _table_verdict(table),
        )
    screen.print(tables)
    show_rest(screen, len(plan.tables), all_rows)
    show_learned(screen, "runs", [table.learned_from_runs for table in plan.tables])
    if adaptive:
        screen.print(
            "recovery: until a late table has caught up after an outage of its feed of the length λ, counted "
            "from its first release with the recovery period.",
            style="dim",
            highlight=False,
        )


def _show_verdict(screen: Console, plan: Plan) -> None:
    expected = any(table.expected for table in plan.tables)
    if plan.holds:
        targets = sum(table.target_lag_us is not None for table in plan.tables)
        said = "all tables have a bound (no targets declared)"
        if targets:
            proven = "expected to be kept" if expected else "proven"
            said = f"all {targets} targets are {proven}" if targets > 1 else f"the one target is {proven}"
        elif not plan.tables:
            said = "all outputs are in time"
        if plan.queries:
            said += ", and all queries are answered in time"
        if plan.outputs and plan.tables:
            said += ", and all outputs are in time"
        screen.print(f"[green]{'Expected' if expected else 'Holds'}:[/] {said}.", highlight=False)
    else:
        failing = sum(not table.holds for table in plan.tables)
        tables_in_all = counted(len(plan.tables), "table")
        if failing:
            screen.print(f"[red]Not proven[/] for {failing} of {tables_in_all}.", highlight=False)
        unproven = sum(not output.holds for output in plan.outputs)
        if unproven:
            outputs_in_all = counted(len(plan.outputs), "output")
            screen.print(f"[red]Not proven[/] for {unproven} of {outputs_in_all}.", highlight=False)
        late = sum(not query.holds for query in plan.queries)
        if late:
            queries_in_all = f"{len(plan.queries)} {'query' if len(plan.queries) == 1 else 'queries'}"
            screen.print(f"[red]Not in time[/]: {late} of {queries_in_all}.", highlight=False)
    for sentence in plan.advice:
        screen.print(f"  - {sentence}", highlight=False, markup=False)
    if expected:
        screen.print(
            "Expected, not proven: pools provisioned for what updates cost on average, and what reads from "
            "them; updates that cost more can exceed these bounds.",
            style="dim",
            highlight=False,
        )
    screen.print(
        "Assumed: no update costs more than declared or learned, feeds deliver as declared, the tracks stay.",
        style="dim",
        highlight=False,
    )
    if plan.queries:
        screen.print(_assumed_of_queries(plan), style="dim", highlight=False)


def _assumed_of_queries(plan: Plan) -> str:
    policies = {plan.warehouse.pools[query.pool].policy for query in plan.queries}
    said = "Queries cost what is declared or learned, or what their operators do over the feeds' `rows`."
    if "lrm" in policies:
        said += " Under `lrm` no deadline is missed, whatever comes: less is read instead."
    others = sorted(policies - {"lrm"})
    if others:
        said += f" Under `{'` and `'.join(others)}` that is assumed of every window."
    return said


def chosen_rows(tables: Sequence[TablePlan], all_rows: bool) -> list[TablePlan]:
    """The tables to show: all of them, or as many as fit, those without a proof first."""
    if all_rows or len(tables) <= ROWS_MAX:
        return list(tables)
    return sorted(tables, key=lambda table: table.holds)[:ROWS_MAX]


def _show_clusters(screen: Console, pool: PoolPlan) -> None:
    for number, cluster in enumerate(pool.clusters or (), start=1):
        tracks = counted(cluster.tracks, "track")
        screen.print(
            f"  {pool.name}/{number}: {tracks} for {_listed(cluster.tables)}",
            style="dim",
            highlight=False,
            markup=False,
        )


def _show_blocking(screen: Console, pool: PoolPlan) -> None:
    """Shows how long batches may block other tables, if there are any and a bound counts it."""
    if pool.blocking_most_us is None and not pool.blocking_us:
        return
    said = f"blocking {format_duration(pool.blocking_us)}"
    if pool.blocking_most_us is not None:
        said += f", all targets allow {format_duration(pool.blocking_most_us, down=True)}"
    if pool.batch_limit_us is not None:
        said += f"; a batch takes {format_duration(pool.batch_limit_us, down=True)} at most"
    screen.print(f"  {pool.name}: {said}", style="dim", highlight=False, markup=False)


def _show_classes(screen: Console, pool: PoolPlan) -> None:
    """Shows the classes of the pool, and how long they block updates."""
    if not pool.classes:
        return
    said = f"answers {_listed(pool.classes)}, the most important first"
    if pool.tables:
        said += f"; a part of a request blocks an update for {format_duration(pool.part_us)} at most"
    screen.print(f"  {pool.name}: {said}", style="dim", highlight=False, markup=False)


def _show_unbounded(screen: Console, plan: Plan, pool: PoolPlan) -> None:
    """Shows which tables of a pool have no bound, and how they are scheduled."""
    behaves_as = pool.behaves_as(plan.tables)
    said = None
    if behaves_as != pool.policy:
        said = f"no bound: behaves as {behaves_as}"
    elif POLICIES[pool.policy].adaptive:
        names = [table.name for table in _tables_of(plan, pool) if _lacks_recovery(plan, table)]
        if names:
            said = f"no bound for {_listed(names)}: served as with edf"
    if said is not None:
        screen.print(f"  {pool.name}: {said}", style="dim", highlight=False, markup=False)


def _tables_of(plan: Plan, pool: PoolPlan) -> list[TablePlan]:
    return [table for table in plan.tables if table.pool == pool.name]


def _lacks_recovery(plan: Plan, table: TablePlan) -> bool:
    return table.staleness_bound_us is None and table.name in plan.warehouse.released_by_files


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


def _recovery(plan: Plan, table: TablePlan) -> str:
    """x(λ), rounded up."""
    line = recovery_line(plan, table)
    if line is None:
        return "-"
    base_us, per_second = line
    return f"{format_duration(base_us, up=True)} + {ceil(per_second * 100) / 100:g} λ"


def _table_verdict(table: TablePlan) -> str:
    if not table.holds:
        return "[red]not proven[/]"
    return "[yellow]expected[/]" if table.expected else "[green]holds[/]"


def _verdict(plan: Plan, pool: PoolPlan) -> str:
    if pool.queries:
        return pool_verdict(plan, pool)
    if not pool.fits:
        return "[red]overloaded[/]"
    if not POLICIES[pool.policy].proven:
        return "[yellow]no bound known[/]"
    bounded = sum(table.response_bound_us is not None for table in _tables_of(plan, pool))
    if bounded == len(pool.tables):
        return "[yellow]expected[/] (average costs)" if pool.provisioning == "average" else "bounded"
    return f"[red]{bounded} of {len(pool.tables)} bounded[/]" if bounded else "[red]unbounded[/]"
