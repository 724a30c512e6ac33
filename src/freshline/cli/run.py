"""`freshline run` and `freshline replay`."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer
from rich.console import Console
from rich.live import Live

from freshline.base.errors import InputError
from freshline.base.printable import printable
from freshline.base.signals import told
from freshline.cli.plain_progress import PlainProgress
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    duration_option,
    load_project,
    print_json,
    project_folder,
    say,
    storage_path,
)
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.replay import kernel_to_replay
from freshline.kernel.assembly.replay import replay as replay_journal
from freshline.live.nodes.parent_lifeline import end_with_parent
from freshline.live.nodes.supervisor import INCOMPLETE, LOST
from freshline.live.status.status import Progress, WarehouseStatus
from freshline.live.status.summary import show_summary, targets_exceeded
from freshline.live.status.view import render

if TYPE_CHECKING:
    from freshline.live.run.runner import Runner

MasterOption = Annotated[
    str | None,
    typer.Option(help="A Spark master, such as spark://host:7077 (default: this machine).", metavar="URL"),
]
ConfOption = Annotated[
    list[str] | None, typer.Option("--conf", help="A Spark setting (repeatable).", metavar="KEY=VALUE")
]


def run(
    project: ProjectOption = DEFAULT_PROJECT,
    master: MasterOption = None,
    conf: ConfOption = None,
    for_: Annotated[
        str | None, typer.Option("--for", help="How long (default: until interrupted).", metavar="DURATION")
    ] = None,
    drain: Annotated[bool, typer.Option("--drain", help="Stop when there is nothing left to load.")] = False,
    cold: Annotated[
        bool, typer.Option("--cold", help="Do not warm Spark up: the first updates are slow.")
    ] = False,
    accept_change: Annotated[
        list[str] | None,
        typer.Option(help="Continue with a table that has changed (repeatable).", metavar="TABLE"),
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Accept landing directories that look like other folders, now and later."),
    ] = False,
    node: Annotated[
        str | None,
        typer.Option(help="Run only this node (default: all nodes of this machine).", metavar="NAME"),
    ] = None,
    tied: Annotated[bool, typer.Option("--tied", hidden=True)] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the warehouse on Spark, until interrupted.

    A table whose rows were computed by other SQL is refused: rebuild it, or accept the change from here on.
    A warehouse with nodes runs as a process for each, which is started again if it dies.

    Example: freshline run -p my/project --for 2m
    """
    if tied:
        end_with_parent()
    for_us = None if for_ is None else duration_option(for_, "--for")
    warehouse = load_project(project)
    _check_node(warehouse, node, master)
    if warehouse.nodes and node is None:
        flags = {"--drain": drain, "--cold": cold, "--yes": yes}
        words = {"--accept-change": accept_change or [], "--conf": conf or []}
        options = [flag for flag, given in flags.items() if given]
        options += [each for option, given in words.items() for word in given for each in (option, word)]
        code = _run_nodes(warehouse, project, options, for_us, as_json)
    else:
        settings = spark_settings(conf)
        if node is not None:
            master, settings = warehouse.nodes[node].master, {**warehouse.nodes[node].conf, **settings}
        starting = partial(
            _runner, warehouse, project, node, master, settings, drain, cold, accept_change or [], yes
        )
        code = _run_here(starting, for_us, as_json, is_node=node is not None, tied=tied)
    raise typer.Exit(code)


def _runner(
    warehouse: Warehouse,
    project: Path,
    node: str | None,
    master: str | None,
    settings: dict[str, str],
    drain: bool,
    cold: bool,
    accepted: list[str],
    accept_landing: bool,
    on_start: Callable[[Progress], None],
) -> Runner:
    from freshline.live.run.run_options import RunOptions  # Spark is slow to import
    from freshline.live.run.runner import Runner

    return Runner(
        warehouse,
        project_folder(project),
        storage_path(project, warehouse),
        RunOptions(
            master=master,
            settings=settings,
            drain=drain,
            warm="none" if cold else "first",
            accepted=accepted,
            accept_landing=accept_landing,
            on_start=on_start,
            node=node,
        ),
    )


def _run_here(
    starting: Callable[[Callable[[Progress], None]], Runner],
    for_us: int | None,
    as_json: bool,
    is_node: bool,
    tied: bool,
) -> int:
    """Runs a warehouse, or one of its nodes, in this process, and returns the exit code.

    A `tied` node leaves reports about all nodes to the process that started it.
    """
    screen = None if as_json else console()
    with TellStart(quiet=as_json or tied) as tell, starting(tell.say) as runner:
        tell.over()
        for sentence in runner.said:
            print(f"{sentence}.", file=sys.stderr)
        for sentence in [] if tied else runner.shortcomings:
            say(sentence)
        end_in_order(runner)
        follow(None if tied else screen, runner, for_us)
        status = runner.status()
    _sum_up(screen, runner, status)
    if is_node and runner.lost:
        return LOST
    if runner.lost or runner.incomplete:
        return INCOMPLETE
    return 1 if targets_exceeded(status) else 0


def _check_node(warehouse: Warehouse, node: str | None, master: str | None) -> None:
    if warehouse.nodes and master is not None:
        raise InputError("--master beside `nodes`, which have masters of their own", "Leave it out")
    if node is not None and node not in warehouse.nodes:
        remedy = f"The nodes are {', '.join(warehouse.nodes)}" if warehouse.nodes else "There are no nodes"
        raise InputError(f"there is no node {node}", remedy)


def _run_nodes(
    warehouse: Warehouse, project: Path, options: list[str], for_us: int | None, as_json: bool
) -> int:
    """Runs the nodes of a warehouse, each in its own process, and returns the exit code."""
    from freshline.cli.nodes import RunningNodes  # Spark is slow to import

    screen = None if as_json else console()
    nodes = RunningNodes(warehouse, project, storage_path(project, warehouse), options, for_us)
    code = nodes.run(screen)
    status = nodes.status()
    if status is not None and screen is None:
        print_json(summary_record(status, nodes.stopped_because) | {"said": nodes.said or []})
    elif status is not None and screen is not None:
        show_summary(screen, status, status.started_us, status.at_us)
    return code


def _sum_up(screen: Console | None, runner: Runner, status: WarehouseStatus) -> None:
    if screen is None:
        said = [*runner.said, *runner.shortcomings]
        print_json(summary_record(status, runner.stopped_because) | {"said": said})
    else:
        show_summary(
            screen, status, status.started_us, status.at_us, runner.records.observation.asserted_max_us
        )
    if runner.stopped_because and (runner.lost or runner.incomplete):
        print(f"Stopped: {printable(runner.stopped_because)}.", file=sys.stderr)


class TellStart:
    """Reports the progress of a start on standard error.

    On a terminal counts share one line, which disappears after the start; Spark may print after other lines.
    Elsewhere each activity has one line, unless the command must be `quiet`.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._has_line = False
        self._doing = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over()

    def say(self, progress: Progress) -> None:
        if self._on_terminal:
            self.over()
            self._has_line = progress.of > 0
            end = "" if self._has_line else "\n"
            text = printable(str(progress))
            print(f"{text[:1].upper()}{text[1:]} ...", end=end, file=sys.stderr, flush=True)
        elif progress.doing != self._doing and not self._quiet:
            self._doing = progress.doing
            text = printable(progress.doing)
            print(f"{text[:1].upper()}{text[1:]} ...", file=sys.stderr, flush=True)

    def over(self) -> None:
        if self._has_line:
            self._has_line = False
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def end_in_order(runner: Runner) -> None:
    """Installs signal handlers that end a running warehouse in order, with a summary."""
    for number, why in ((signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")):
        signal.signal(number, partial(_interrupt, runner, why))


def _interrupt(runner: Runner, why: str, number: int, frame: FrameType | None) -> None:
    told(number)
    runner.interrupt(why)


def follow(screen: Console | None, runner: Runner, for_us: int | None) -> None:
    """Runs a runner until it ends: on a terminal with a live view, elsewhere with plain lines.

    Without a screen it shows nothing.
    """
    if screen is None or not screen.is_terminal:
        runner.on_status = None if screen is None else PlainProgress().hear
        runner.run(for_us)
        return
    with Live(console=screen, refresh_per_second=4, transient=True) as live:
        runner.on_status = lambda status: live.update(render(status, status.at_us))
        runner.run(for_us)


def summary_record(status: WarehouseStatus, stopped_because: str | None) -> dict[str, Any]:
    """The results of a run at its end, as JSON."""
    return status.summary_record(stopped_because, holds=not targets_exceeded(status))


def spark_settings(options: list[str] | None) -> dict[str, str]:
    """The Spark settings of the command line."""
    settings = {}
    for option in options or []:
        key, separator, value = option.partition("=")
        if not separator or not key:
            raise InputError(f"--conf {option} is not a setting", "Write --conf spark.executor.memory=2g")
        settings[key] = value
    return settings


def replay(
    log: Annotated[Path, typer.Argument(help="A log of `freshline run` or `freshline simulate --log`.")],
    as_json: JsonOption = False,
) -> None:
    """Feed a run's events through the kernel again, and expect the same instructions.

    Example: freshline replay warehouse/_freshline/logs/20260101T000000.jsonl
    """
    records = _records(log)
    header = next(records, {})
    calls, difference = replay_journal(kernel_to_replay(header, str(log)), records, header)
    if as_json:
        print_json(
            {
                "identical": difference is None,
                "calls": calls,
                "difference": None if difference is None else asdict(difference),
            }
        )
    elif difference is None:
        print(f"Identical: {calls:,} calls gave the same instructions.")
    else:
        print(printable(f"Call {difference.call} at {difference.now} differs from the log:"))
        if difference.reason is not None:
            print(printable(f"  {difference.reason}: the log has lost lines, here or before"))
        else:
            print(f"  log:      {json.dumps(difference.journal)}")
            print(f"  replayed: {json.dumps(difference.replayed)}")
    raise typer.Exit(0 if difference is None else 1)


def _records(log: Path) -> Iterator[dict[str, Any]]:
    try:
        with log.open(encoding="utf-8", errors="replace") as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    if number == 1:
                        raise InputError(f"{log} is not JSON: {error}", "Name a log of a run") from error
                    # The last line of a run that was killed may be incomplete.
                    if next(stream, None) is None:
                        return
                    record = {}
                yield record if isinstance(record, dict) else {}
    except OSError as error:
        raise InputError(f"cannot read {log}: {error.strerror}", "Name a readable file") from error
