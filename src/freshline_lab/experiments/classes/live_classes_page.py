"""The page of a live run of paper 003's classes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def write_live_page(record: dict[str, Any], into: Path) -> Path:
    """Writes live.json and live.md into a folder."""
    into.mkdir(parents=True, exist_ok=True)
    (into / "live.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    page = into / "live.md"
    page.write_text("\n".join(_lines(record)) + "\n", encoding="utf-8")
    return page


def _lines(record: dict[str, Any]) -> Iterator[str]:
    loads = " → ".join(f"{load:g}" for load in record["loads"])
    yield "# Service classes live on Spark"
    yield ""
    yield (
        f"Load {loads} %, {record['seconds']} s each, by HTTP, while two tables load; "
        f"{record['rows']:,} rows, deadlines of {record['deadline']:g} s, one track. A load is the rate of "
        "requests times what one takes of the track. Errors and shares in percent, from 15 s after each "
        "change of load on."
    )
    for run in record["policies"]:
        yield from _run(run)
    yield ""
    yield "## What is asked for, of rds-quota"
    yield ""
    yield "| required | measured | |"
    yield "|---|---|---|"
    for each in record["requirements"]:
        yield f"| {each['required']} | {each['measured']} | {'met' if each['met'] else '**not met**'} |"


def _run(run: dict[str, Any]) -> Iterator[str]:
    in_time, stolen = run["in_time"], run["stolen"]
    yield ""
    yield f"## {run['policy']}"
    yield ""
    yield (
        f"{run['requests']} requests of {run['work']:.2f} s on average; "
        f"{'no answers' if in_time is None else f'{in_time:.1%} of answers'} within 1.1 deadlines; "
        f"{_shown(None if stolen is None else 100 * stolen)} % of the processors' time was taken by the host."
    )
    yield ""
    yield "| load | class | asked | admitted | error | unanswered |"
    yield "|---|---|---|---|---|---|"
    for phase in run["phases"]:
        for each in phase["classes"]:
            figures = " | ".join(_shown(each[key]) for key in ("admitted", "ate", "unanswered"))
            yield f"| {phase['load']:g} | {each['class']} | {each['submitted']} | {figures} |"
    yield ""
    for table in run["tables"]:
        staleness, bound = _shown(table["staleness"]), _shown(table["bound"])
        yield f"- {table['name']}: staleness {staleness} s, bound {bound} s."


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
