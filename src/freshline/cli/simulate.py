"""`freshline simulate`."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from freshline.cli import what_if as what_if_options
from freshline.cli.plan import show_rest
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    ROWS_MAX,
    AllOption,
    JsonOption,
    ProjectOption,
    console,
    duration_option,
    grid,
    load_with_costs,
    pool_record,
    print_json,
    seconds,
    table_record,
    working,
)
from freshline.definitions.duration import format_duration, parse_duration
from freshline.definitions.errors import InputError
from freshline.definitions.names import cut
from freshline.definitions.policies import POLICIES, PolicyName
from freshline.definitions.values import TRACKS_MAX
from freshline.definitions.warehouse import Warehouse
from freshline.plan.advice import counted
from freshline.plan.make import make_plan, what_if
from freshline.recovery.terms import Recovery
from freshline.simulation.crashes import checked_crashes
from freshline.simulation.failures import checked_failures
from freshline.simulation.gaps import checked_gaps
from freshline.simulation.outages import checked_outages
from freshline.simulation.simulate import PoolResult, SimulationResult, TableResult
from freshline.simulation.simulate import simulate as run_simulation
from freshline.simulation.slow import checked_factors
from freshline.simulation.spans import Span, Spans

_REASONS_MAX = 5
_FACTOR = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")


def simulate(
    project: ProjectOption = DEFAULT_PROJECT,
    policy: Annotated[
        str | None, typer.Option(help=f"Another policy in all pools: {', '.join(POLICIES)}.")
    ] = None,
    tracks: Annotated[
        list[str] | None,
        typer.Option(help="Another number of tracks: M, or POOL=M (repeatable).", metavar="[POOL=]M"),
    ] = None,
    for_: Annotated[
        str, typer.Option("--for", help="How long, in simulated time.", metavar="DURATION")
    ] = "8h",
    seed: Annotated[int, typer.Option(help="The seed of costs and arrivals.")] = 0,
    outage: Annotated[
        list[str] | None,
        typer.Option(help="A feed of files is down for a while (repeatable).", metavar="FEED:START-END"),
    ] = None,
    gap: Annotated[
        list[str] | None,
        typer.Option(
            help="A feed delivers on time, but no rows of a while: derived tables jump over it (repeatable).",
            metavar="FEED:START-END",
        ),
    ] = None,
    slow: Annotated[
        list[str] | None,
        typer.Option(
            help="A table's costs are multiplied, though not in the plan (repeatable).",
            metavar="TABLE:FACTOR",
        ),
    ] = None,
    fail: Annotated[
        list[str] | None,
        typer.Option(
            help="A table's jobs fail by chance, and are tried again as in a run (repeatable).",
            metavar="TABLE:RATE",
        ),
    ] = None,
    crash: Annotated[
        list[str] | None,
        typer.Option(
            help="The runner is gone, for 10s or FOR, and comes back (repeatable).", metavar="TIME[:FOR]"
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw staleness, lag and tracks into this folder.", metavar="DIR")
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Write every event and instruction to this file.", metavar="FILE")
    ] = None,
    as_json: JsonOption = False,
    all_rows: AllOption = False,
) -> None:
    """Replay a warehouse in simulated time: what was observed, beside what was proven.

    Example: freshline simulate --tracks 1 --for 24h --plot out

    What if: freshline simulate --outage packets:1h-2h --gap flows:3h-5h --slow traffic:1.5

    Or: freshline simulate --fail traffic:0.1 --crash 4h:2m
    """
    warehouse, learned = load_with_costs(project)
    end = duration_option(for_, "--for")
    changed = what_if(warehouse, _policy(policy), _tracks(warehouse, tracks or []))
    outages = checked_outages(changed, _spans("--outage", outage or [], end))
    gaps = checked_gaps(changed, _spans("--gap", gap or [], end))
    factors = checked_factors(changed, _factors(slow or []))
    rates = checked_failures(changed, what_if_options.failures(fail or []))
    gone = checked_crashes(what_if_options.crashes(crash or []), end)
    with working("planning"):
        plan = make_plan(changed, learned)
    with ExitStack() as stack:
        stream = None if log is None else stack.enter_context(_writable(log))
        progress = stack.enter_context(simulated_progress(end))
        result = run_simulation(
            plan,
            end,
            seed,
            outages=outages,
            gaps=gaps,
            slow=factors,
            failures=rates,
            crashes=gone,
            keep_history=plot is not None,
            log=stream,
            progress=progress,
        )
    pictures = []
    if plot is not None:
        from freshline.simulation.plots import draw  # matplotlib is slow to import

        pictures = draw(result, plot)
    if as_json:
        print_json(_record(result))
    else:
        _show(console(), result, pictures, all_rows)
    broken = [table.plan.name for table in result.tables if table.exceeded_bound]
    if broken:
        print(
            f"A proven bound was exceeded: {', '.join(broken)}. This is a bug of Freshline: "
            f"please report it, with the file and seed {seed}.",
            file=sys.stderr,
        )
    raise typer.Exit(0 if result.holds and not broken else 1)


def _policy(name: str | None) -> PolicyName | None:
    if name is None or name in POLICIES:
        return name
    raise InputError(f"--policy {name} is not known", f"Choose one of {', '.join(POLICIES)}")


def _tracks(warehouse: Warehouse, options: list[str]) -> dict[str, int]:
    changed: dict[str, int] = {}
    for option in options:
        pool, separator, number = option.rpartition("=")
        if not separator:
            if len(warehouse.pools) > 1:
                raise InputError(
                    f"--tracks {option} does not say of which pool",
                    f"Write --tracks {next(iter(warehouse.pools))}={option}",
                )
            pool = next(iter(warehouse.pools))
        if pool not in warehouse.pools:
            raise InputError(
                f"--tracks {option} names no pool", f"The pools are {', '.join(warehouse.pools)}"
            )
        if not number.isdecimal() or len(number) > len(str(TRACKS_MAX)) or not 1 <= int(number) <= TRACKS_MAX:
            raise InputError(
                f"--tracks {cut(option)} is not a number of tracks",
                f"Write a whole number from 1 to {TRACKS_MAX}",
            )
        if pool in changed:
            raise InputError(f"--tracks is given twice for pool {pool}", "Keep one of the two")
        changed[pool] = int(number)
    return changed


def _spans(name: str, options: list[str], end: int) -> dict[str, list[Span]]:
    """By feed, from when to when something is so."""
    spans: dict[str, list[Span]] = {}
    for option in options:
        feed, _, times = option.rpartition(":")
        begin, separator, over = times.partition("-")
        if not feed or not separator:
            raise InputError(
                f"{name} {cut(option)} is not FEED:START-END", f"Write it as in {name} packets:1h-2h"
            )
        try:
            span = parse_duration(begin), parse_duration(over)
        except InputError as error:
            raise InputError(f"{name} {cut(option)}: {error.what}", error.remedy) from None
        if span[0] >= end:
            raise InputError(
                f"{name} {cut(option)} begins when the run of {format_duration(end)} is over",
                "Let it begin earlier, or simulate for longer with --for",
            )
        spans.setdefault(feed, []).append(span)
    return spans


def _factors(options: list[str]) -> dict[str, Fraction]:
    factors: dict[str, Fraction] = {}
    for option in options:
        table, _, factor = option.rpartition(":")
        if not table or not _FACTOR.fullmatch(factor):
            raise InputError(f"--slow {cut(option)} is not TABLE:FACTOR", "Write it as in --slow traffic:1.5")
        if table in factors:
            raise InputError(f"--slow is given twice for table {cut(table)}", "Keep one of the two")
        factors[table] = Fraction(factor)
    return factors


def _writable(path: Path) -> Any:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {path}: {error.strerror}", "Name a file that can be written"
        ) from error


class _Report(Protocol):
    def __call__(self, now: int) -> None: ...


@contextmanager
def simulated_progress(end: int) -> Iterator[_Report]:
    """A bar on standard error that follows simulated time."""
    bar = Progress(
        TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=end)
        yield lambda now: bar.update(task, completed=now)


def _record(result: SimulationResult) -> dict[str, Any]:
    busy = {pool.name: pool.busy for pool in result.pools}
    plan = result.plan
    return {
        "holds": result.holds,
        "seed": result.seed,
        "for": seconds(result.end),
        "outages": _span_records(result.outages),
        "gaps": _span_records(result.gaps),
        "slow": {table: float(factor) for table, factor in result.slow.items()},
        "failures": {table: float(rate) for table, rate in result.failures.items()},
        "crashes": [{"start": seconds(start), "end": seconds(back)} for start, back in result.crashes],
        "pools": [
            {**pool_record(pool, plan.tables), "tracks_busy": round(busy[pool.name], 6)}
            for pool in plan.pools
        ],
        "tables": [
            {
                **table_record(plan, table.plan),
                "staleness_max": seconds(table.staleness_max_us),
                "lag_max": seconds(table.lag_max_us),
                "jobs": table.jobs,
                "misses": table.misses,
                "failed": table.failed,
                "state": table.state,
                "recovered_at": seconds(table.recovered_at_us),
                "recovery": _recovery_record(table.recovery),
            }
            for table in result.tables
        ],
    }


def _span_records(spans: Mapping[str, Spans]) -> list[dict[str, Any]]:
    return [
        {"feed": feed, "start": seconds(start), "end": seconds(end)}
        for feed, times in spans.items()
        for start, end in times
    ]


def _recovery_record(recovery: Recovery | None) -> dict[str, Any] | None:
    if recovery is None:
        return None
    return {
        "entered": seconds(recovery.entered),
        "due": seconds(recovery.due),
        "ended": seconds(recovery.ended),
        "in_time": recovery.in_time,
    }


def _show(screen: Console, result: SimulationResult, pictures: list[Path], all_rows: bool) -> None:
    rows = list(result.tables)
    if not all_rows and len(rows) > ROWS_MAX:
        rows = sorted(rows, key=_urgency)[:ROWS_MAX]
    changed = bool(result.outages or result.gaps or result.slow or result.failures or result.crashes)
    table = grid(
        f"{result.plan.warehouse.name} over {format_duration(result.end)}, seed {result.seed}",
        {
            "table": False,
            "staleness": True,
            "bound": True,
            "of bound": True,
            "target": True,
            "lag": True,
            "jobs": True,
            "misses": True,
            **({"recovered at": True, "state": False} if changed else {}),
            "": False,
        },
    )
    for row in rows:
        bound_us, target_us = row.plan.staleness_bound_us, row.plan.target_lag_us
        verdict = (
            "[red]exceeded[/]" if row.exceeded_target else "[green]kept[/]" if target_us is not None else ""
        )
        table.add_row(
            row.plan.name,
            format_duration(row.staleness_max_us),
            format_duration(bound_us, up=True),
            "-" if bound_us is None else f"{row.staleness_max_us / bound_us:.0%}",
            format_duration(target_us),
            format_duration(row.lag_max_us),
            str(row.jobs),
            str(row.misses),
            *((format_duration(row.recovered_at_us), row.state) if changed else ()),
            verdict,
        )
    screen.print(table)
    show_rest(screen, len(result.tables), all_rows)
    screen.print()
    for pool, planned in zip(result.pools, result.plan.pools, strict=True):
        screen.print(
            f"Pool {pool.name}: {pool.busy:.2f} of {pool.tracks} tracks busy on average "
            f"(worst case {planned.utilization:.2f}), policy {planned.policy}.",
            highlight=False,
            markup=False,
        )
        _show_given_up(screen, pool)
    _show_what_if(screen, result)
    for picture in pictures:
        screen.print(f"Drawn: {picture}", highlight=False, markup=False, soft_wrap=True)
    exceeded = sum(row.exceeded_target for row in result.tables)
    if exceeded:
        # The plan knows of nothing that goes wrong.
        advice = "" if changed else " `freshline plan` says what would help."
        screen.print(f"[red]Exceeded[/]: {exceeded} targets.{advice}", highlight=False)
    else:
        screen.print("[green]Kept[/]: no target was exceeded.", highlight=False)


def _show_given_up(screen: Console, pool: PoolResult) -> None:
    if pool.given_up:
        # Which table is at fault is said once, however often it was.
        times = Counter(reason for _, reason in pool.given_up)
        reasons = ", ".join(f"{reason} ({number})" for reason, number in times.most_common(_REASONS_MAX))
        more = f" and {len(times) - _REASONS_MAX} more" if len(times) > _REASONS_MAX else ""
        certificates = counted(len(pool.given_up), "certificate")
        screen.print(
            f"Pool {pool.name}: {certificates} given up: {reasons}{more}.", highlight=False, markup=False
        )


def _show_what_if(screen: Console, result: SimulationResult) -> None:
    for what, by_feed in (("down", result.outages), ("without rows", result.gaps)):
        for feed, times in by_feed.items():
            spans = ", ".join(f"{format_duration(start)} to {format_duration(end)}" for start, end in times)
            screen.print(f"Feed {feed} {what}: {spans}.", highlight=False, markup=False)
    for name, factor in result.slow.items():
        screen.print(f"Table {name}: costs multiplied by {float(factor):g}.", highlight=False, markup=False)
    for row in result.tables:
        if row.plan.name in result.failures:
            said = f"Table {row.plan.name}: {row.failed} of {row.jobs + row.failed} jobs failed."
            screen.print(said, highlight=False, markup=False)
    for start, back in result.crashes:
        said = f"The runner was gone: {format_duration(start)} to {format_duration(back)}."
        screen.print(said, highlight=False, markup=False)


def _urgency(row: TableResult) -> tuple[bool, float]:
    """Exceeded targets first, then what came closest to its bound."""
    bound_us = row.plan.staleness_bound_us
    return (not row.exceeded_target, -row.staleness_max_us / bound_us if bound_us else 0.0)
