"""What if: the options of `freshline simulate` that change the warehouse or inject faults."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Annotated

import typer

from freshline.base.duration import SECOND, format_duration, parse_duration
from freshline.base.errors import InputError
from freshline.base.names import cut, is_name
from freshline.cli.shared import storage_path
from freshline.definitions.language.policies import POLICIES, PolicyName, policies_for
from freshline.definitions.language.values import TRACKS_MAX
from freshline.definitions.sections.classes import PART_MOST_US
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.requests import ALL_REQUESTS, PART_ASSUMED_US
from freshline.simulation.classes import PARTS, RequestRate
from freshline.simulation.conditions.crashes import Crash
from freshline.simulation.conditions.spans import Span
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout

PolicyOption = Annotated[
    str | None, typer.Option(help=f"Another policy in all pools that can have it: {', '.join(POLICIES)}.")
]
TracksOption = Annotated[
    list[str] | None,
    typer.Option(help="Another number of tracks: M, or POOL=M (repeatable).", metavar="[POOL=]M"),
]
ForOption = Annotated[str, typer.Option("--for", help="How long, in simulated time.", metavar="DURATION")]
OutageOption = Annotated[
    list[str] | None,
    typer.Option(help="A feed of files is down for a while (repeatable).", metavar="FEED:START-END"),
]
GapOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A feed delivers on time, but no rows of this span: derived tables skip it (repeatable).",
        metavar="FEED:START-END",
    ),
]
SlowOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The costs of a table, query or class are multiplied, but not in the plan (repeatable).",
        metavar="NAME:FACTOR",
    ),
]
FailOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Jobs of a table fail at random, with retries as in a run (repeatable).",
        metavar="TABLE:RATE",
    ),
]
CrashOption = Annotated[
    list[str] | None,
    typer.Option(
        help="The runner, or one node, is down for 10s or FOR, and restarts (repeatable).",
        metavar="[NODE:]TIME[:FOR]",
    ),
]
RequestsOption = Annotated[
    list[str] | None,
    typer.Option(
        help="A class is asked so often, in PARTS parts (8), by chance; due after 10 times what they take "
        "(repeatable).",
        metavar="CLASS:RATE/s[:PARTS]",
    ),
]
# How long a runner is down if it is restarted at once.
_GONE_US = 10 * SECOND
_NUMBER = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
_REQUESTS = re.compile(rf"(?P<name>.+):(?P<rate>{_NUMBER.pattern})/s(:(?P<parts>[0-9]{{1,6}}))?")


def policy_option(warehouse: Warehouse, name: str | None) -> PolicyName | None:
    if name is None:
        return None
    if name not in POLICIES:
        raise InputError(f"--policy {name} is not known", f"Choose one of {', '.join(POLICIES)}")
    if not warehouse.queries and "tables" not in POLICIES[name].holds:
        choice = ", ".join(policies_for("tables"))
        raise InputError(f"--policy {name} is for queries, and there are none", f"Choose one of {choice}")
    return name


def tracks_options(warehouse: Warehouse, options: list[str]) -> dict[str, int]:
    changed: dict[str, int] = {}
    for option in options:
        pool, separator, number = option.rpartition("=")
        if not warehouse.pools:
            raise InputError(
                f"--tracks {cut(option)}: there are no pools", "Leave it out: nodes have a track each"
            )
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


def spans_options(name: str, options: list[str], end: int) -> dict[str, list[Span]]:
    """The spans of time by feed."""
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


def factor_options(options: list[str]) -> dict[str, Fraction]:
    """`NAME:FACTOR`: by table or query, the factor of its costs."""
    return _by_name("--slow", "NAME:FACTOR", "1.5", options)


def failure_options(options: list[str]) -> dict[str, Fraction]:
    """`TABLE:RATE`: by table, the probability that a job fails."""
    return _by_name("--fail", "TABLE:RATE", "0.1", options)


def _by_name(name: str, form: str, example: str, options: list[str]) -> dict[str, Fraction]:
    numbers: dict[str, Fraction] = {}
    for option in options:
        whose, _, number = option.rpartition(":")
        if not whose or not _NUMBER.fullmatch(number):
            raise InputError(
                f"{name} {cut(option)} is not {form}", f"Write it as in {name} traffic:{example}"
            )
        if whose in numbers:
            raise InputError(f"{name} is given twice for {cut(whose)}", "Keep one of the two")
        numbers[whose] = Fraction(number)
    return numbers


def crash_options(options: list[str]) -> tuple[list[Crash], dict[str, list[Crash]]]:
    """`[NODE:]TIME[:FOR]`: when the runner is down, and by node when it is."""
    spans: list[Crash] = []
    of_nodes: dict[str, list[Crash]] = {}
    for option in options:
        node, separator, times = option.partition(":")
        named = bool(separator) and is_name(node)
        time, separator, length = (times if named else option).partition(":")
        try:
            start = parse_duration(time)
            span = (start, start + (parse_duration(length) if separator else _GONE_US))
        except InputError as error:
            raise InputError(f"--crash {cut(option)}: {error.what}", error.remedy) from None
        (of_nodes.setdefault(node, []) if named else spans).append(span)
    return spans, of_nodes


def request_options(options: list[str], part_us: int) -> dict[str, RequestRate]:
    """`CLASS:RATE/s[:PARTS]`, by class: how often it is asked, in parts that take so long."""
    rates: dict[str, RequestRate] = {}
    for option in options:
        found = _REQUESTS.fullmatch(option)
        if found is None:
            raise InputError(
                f"--requests {cut(option)} is not CLASS:RATE/s[:PARTS]",
                "Write it as in --requests operators:5/s, or operators:0.5/s:16",
            )
        name = found["name"]
        if name in rates:
            raise InputError(f"--requests is given twice for {cut(name)}", "Keep one of the two")
        rates[name] = RequestRate(Fraction(found["rate"]), int(found["parts"] or PARTS), part_us)
    return rates


def request_part_us(project: Path, warehouse: Warehouse) -> int:
    """What a part of a request usually takes, by those that were answered; otherwise what a run assumes."""
    layout = StorageLayout(storage_path(project, warehouse))
    control = layout.controls(warehouse.nodes)[0] if warehouse.nodes else layout.control()
    with History(control.history, read_only=True) as history:
        took = [part.duration_us for part in history.parts(ALL_REQUESTS)]
    return min(PART_MOST_US, int(median(took))) if took else PART_ASSUMED_US
