"""`freshline simulate`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from freshline.base.errors import InputError
from freshline.cli.printing.outputs import verdict, with_placement
from freshline.cli.printing.simulated import show_simulated, simulated_record
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    AllOption,
    JsonOption,
    ProjectOption,
    console,
    duration_option,
    load_with_costs,
    print_json,
    working,
)
from freshline.cli.what_if import (
    CrashOption,
    FailOption,
    ForOption,
    GapOption,
    OutageOption,
    PolicyOption,
    RequestsOption,
    SlowOption,
    TracksOption,
    crash_options,
    factor_options,
    failure_options,
    policy_option,
    request_options,
    request_part_us,
    spans_options,
    tracks_options,
)
from freshline.planning.plan.make import make_plan, what_if
from freshline.planning.plan.plan import Plan
from freshline.simulation.conditions.conditions import checked
from freshline.simulation.simulate import SimulationResult
from freshline.simulation.simulate import simulate as run_simulation

PlotOption = Annotated[
    Path | None, typer.Option(help="Draw staleness, lag and tracks into this folder.", metavar="DIR")
]
LogOption = Annotated[
    Path | None, typer.Option(help="Write every event and instruction to this file.", metavar="FILE")
]


def simulate(
    project: ProjectOption = DEFAULT_PROJECT,
    policy: PolicyOption = None,
    tracks: TracksOption = None,
    for_: ForOption = "8h",
    seed: Annotated[int, typer.Option(help="The seed of costs and arrivals.")] = 0,
    outage: OutageOption = None,
    gap: GapOption = None,
    slow: SlowOption = None,
    fail: FailOption = None,
    crash: CrashOption = None,
    requests: RequestsOption = None,
    plot: PlotOption = None,
    log: LogOption = None,
    as_json: JsonOption = False,
    all_rows: AllOption = False,
) -> None:
    """Replay a warehouse in simulated time: what was observed, beside what was proven.

    Example: freshline simulate --tracks 1 --for 24h --plot out

    What if: freshline simulate --outage packets:1h-2h --gap flows:3h-5h --slow traffic:1.5

    Or: freshline simulate --fail traffic:0.1 --crash 4h:2m --crash edge:6h

    Service classes are simulated where they are asked: freshline simulate --requests operators:1/s:8
    """
    warehouse, learned = load_with_costs(project)
    part_us = request_part_us(project, warehouse) if requests else 0
    end = duration_option(for_, "--for")
    changed = what_if(warehouse, policy_option(warehouse, policy), tracks_options(warehouse, tracks or []))
    crashes, node_crashes = crash_options(crash or [])
    conditions: dict[str, Any] = {
        "outages": spans_options("--outage", outage or [], end),
        "gaps": spans_options("--gap", gap or [], end),
        "slow": factor_options(slow or []),
        "failures": failure_options(fail or []),
        "crashes": crashes,
        "node_crashes": node_crashes,
        "requests": request_options(requests or [], part_us),
    }
    checked(changed, end, **conditions)
    with working("planning"):
        plan = make_plan(changed, learned)
    plan = with_placement(plan, learned, project)
    if plan.outputs and plan.placed is None:
        raise verdict(plan)
    result = _run(plan, end, seed, conditions, plot is not None, log)
    if changed.classes and not requests:
        _say_unasked([*changed.classes])
    pictures = [] if plot is None else _drawn(result, plot)
    if as_json:
        print_json(simulated_record(result))
    else:
        show_simulated(console(), result, pictures, all_rows)
    broken = _report_broken(result)  # also if targets are exceeded anyway
    raise typer.Exit(1 if broken or not result.holds else 0)


def _run(
    plan: Plan, end: int, seed: int, conditions: dict[str, Any], keep_records: bool, log: Path | None
) -> SimulationResult:
    with ExitStack() as stack:
        stream = None if log is None else stack.enter_context(_writable(log))
        progress = stack.enter_context(simulated_progress(end))
        options: dict[str, Any] = {"keep_records": keep_records, "journal_to": stream, "progress": progress}
        return run_simulation(plan, end, seed, **conditions, **options)


def _drawn(result: SimulationResult, folder: Path) -> list[Path]:
    from freshline.simulation.drawing import draw  # matplotlib is slow to import

    return draw(result, folder)


def _say_unasked(classes: Sequence[str]) -> None:
    said = f"No requests were simulated: nothing asks the classes ({', '.join(classes)}). Add for instance"
    print(f"{said} --requests {classes[0]}:1/s.", file=sys.stderr)


def _report_broken(result: SimulationResult) -> bool:
    """Reports proven bounds that were exceeded, and returns whether there were any."""
    broken = [table.plan.name for table in result.tables if table.exceeded_bound]
    broken += [query.plan.name for query in result.queries if query.broke_proof]
    broken += [output.name for output in result.outputs if output.broke_proof]
    if broken:
        print(
            f"A proven bound was exceeded: {', '.join(broken)}. This is a bug of Freshline: "
            f"please report it, with the file and seed {result.seed}.",
            file=sys.stderr,
        )
    return bool(broken)


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
    """A progress bar on standard error that follows simulated time."""
    bar = Progress(
        TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=end)
        yield lambda now: bar.update(task, completed=now)
