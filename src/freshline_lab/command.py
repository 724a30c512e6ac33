"""`freshline experiment`: the papers' evaluations, run again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from freshline.cli.shared import JsonOption, print_json

experiment = typer.Typer(
    help="Run a paper's evaluation again and compare.", no_args_is_help=True, rich_markup_mode=None
)


@experiment.callback()
def _group() -> None:
    """Run a paper's evaluation again and compare."""


@experiment.command("staleness-bounds")
def staleness_bounds(
    quick: Annotated[bool, typer.Option("--quick", help="A twentieth of the events.")] = False,
    out: Annotated[Path, typer.Option(help="Where table, figure and page go.", metavar="DIR")] = Path(
        "out/staleness-bounds"
    ),
    seed: Annotated[int, typer.Option(help="The seed of costs and phases.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Paper 004, section 5: observed staleness and the pessimism of its bounds, m = 4 to 32.

    Example: freshline experiment staleness-bounds --quick --out out
    """
    from freshline_lab.experiments.staleness.staleness_bounds import EVENTS, EVENTS_QUICK, run

    record = run(out, events=EVENTS_QUICK if quick else EVENTS, seed=seed, quiet=as_json)
    if as_json:
        print_json(record)


@experiment.command("outage-recovery")
def outage_recovery(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds of costs and phases.")] = 20,
    into: Annotated[Path, typer.Option(help="Where table, figure and page go.", metavar="DIR")] = Path(
        "out/outage-recovery"
    ),
    live: Annotated[
        bool, typer.Option("--live", help="On Spark at a hundredth of the time, instead of simulated.")
    ] = False,
    seconds: Annotated[int, typer.Option(min=1, help="With --live: how long each policy runs.")] = 300,
    as_json: JsonOption = False,
) -> None:
    """Paper 001, figure 9: how late tables recover after an outage, and what it does to the others.

    Exit code 1 if a requirement of its page is not met.

    Example: freshline experiment outage-recovery --seeds 5 --into out
    """
    if live:
        from freshline_lab.experiments.outages import live_outage

        record = live_outage.run_all(seconds, quiet=as_json)
        unmet = []
    else:
        from freshline_lab.experiments.outages.outage_page import requirements
        from freshline_lab.experiments.outages.outage_recovery import run

        record = run(into, seeds=seeds, quiet=as_json)
        unmet = [f"{required}: {measured}" for required, measured, met in requirements(record) if not met]
    if as_json:
        print_json(record)
    for requirement in unmet:
        typer.echo(f"Not met: {requirement}", err=True)
    if unmet:
        raise typer.Exit(1)


@experiment.command("continuous-queries")
def continuous_queries(
    quick: Annotated[bool, typer.Option("--quick", help="5 runs instead of 20, 1,000 sets.")] = False,
    trace: Annotated[
        Path | None,
        typer.Option(help="Arrivals in µs, one a line, plain or .gz, as a workload too.", metavar="FILE"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of rates and sets.")] = 0,
    into: Annotated[Path, typer.Option(help="Where tables, figures and page go.", metavar="DIR")] = Path(
        "out/continuous-queries"
    ),
    live: Annotated[
        bool, typer.Option("--live", help="Also on Spark: Table 2's kinds at twice its strides.")
    ] = False,
    seconds: Annotated[int, typer.Option(min=1, help="With --live: how long each policy runs.")] = 180,
    as_json: JsonOption = False,
) -> None:
    """Paper 000, figures 8 to 12: missed deadlines and lost tuples of continuous queries under overload.

    Exit code 1 if a requirement of its page is not met.

    Example: freshline experiment continuous-queries --quick --trace arrivals.txt.gz --into out
    """
    from freshline_lab.experiments.queries.continuous_queries import run
    from freshline_lab.experiments.queries.live_queries import run_all

    on_spark = partial(run_all, seconds) if live else None
    record = run(into, quick=quick, trace=trace, seed=seed, quiet=as_json, live=on_spark)
    if as_json:
        print_json(record)
    unmet = [each for each in record["requirements"] if not each["met"]]
    for each in unmet:
        typer.echo(f"Not met: {each['required']}: {each['measured']}", err=True)
    if unmet:
        raise typer.Exit(1)


@experiment.command("placement")
def placement(
    quick: Annotated[bool, typer.Option("--quick", help="10 trials instead of 50.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="On Spark, two nodes, 500 times as slow, instead of simulated.")
    ] = False,
    into: Annotated[Path, typer.Option(help="Where table, figure and page go.", metavar="DIR")] = Path(
        "out/placement"
    ),
    as_json: JsonOption = False,
) -> None:
    """Paper 002, figures 3, 4 and 7: missed deadlines, by placement and scheduling of operators.

    Exit code 1 if a requirement of its page is not met.

    Example: freshline experiment placement --quick --into out
    """
    if live:
        from freshline_lab.experiments.placement.live_placement import run_live
        from freshline_lab.experiments.placement.placement import PAPER_RATES
        from freshline_lab.experiments.placement.placement_page import write_live_page

        measured = run_live(quiet=as_json)
        page = write_live_page(measured, PAPER_RATES, into)
        if as_json:
            print_json(measured)
        else:
            typer.echo(page.read_text(encoding="utf-8"))
        raise typer.Exit(0 if measured["in_order"] else 1)
    from freshline_lab.experiments.placement.placement import run

    record = run(into, quick=quick, quiet=as_json)
    if as_json:
        print_json(record)
    unmet = [each for each in record["requirements"] if not each["met"]]
    for each in unmet:
        typer.echo(f"Not met: {each['required']}: {each['measured']}", err=True)
    if unmet:
        raise typer.Exit(1)


@experiment.command("service-classes")
def service_classes(
    quick: Annotated[
        bool, typer.Option("--quick", help="Five loads, two runs of 150 s, no estimation errors, no step.")
    ] = False,
    runs: Annotated[
        int | None, typer.Option(min=1, help="How many runs of each case (default 10, with --quick 2).")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of objects and requests.")] = 0,
    into: Annotated[Path, typer.Option(help="Where tables, figures and page go.", metavar="DIR")] = Path(
        "out/service-classes"
    ),
    live: Annotated[
        bool, typer.Option("--live", help="On Spark, load 50, 300, 50 % by HTTP, instead of simulated.")
    ] = False,
    seconds: Annotated[int, typer.Option(min=1, help="With --live: how long each load lasts.")] = 75,
    as_json: JsonOption = False,
) -> None:
    """Paper 003, figures 7 to 9: imprecise answers of four service classes from 40 % to 700 % load.

    Exit code 1 if a requirement of its page is not met.

    Example: freshline experiment service-classes --quick --into out
    """
    if live:
        from freshline_lab.experiments.classes.live_classes import run_live

        record, unmet = run_live(into, seconds, quiet=as_json)
    else:
        from freshline_lab.experiments.classes.service_classes import run

        record, unmet = run(into, quick=quick, runs=runs, seed=seed, quiet=as_json)
    if as_json:
        print_json(record)
    for requirement in unmet:
        typer.echo(f"Not met: {requirement}", err=True)
    if unmet:
        raise typer.Exit(1)
