"""The page and the figure of `freshline experiment outage-recovery`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from freshline import __version__
from freshline.base.errors import InputError
from freshline.pictures.figures import save
from freshline.pictures.lag import lag_figure
from freshline.simulation.drawing import lags
from freshline.simulation.simulate import SimulationResult

Record = dict[str, Any]
_TITLES = {"uniform": "uniform phases", "zero": "phase 0"}
_GROUPS = {"V1–V4 (outage)": ("V1", "V2", "V3", "V4"), "V8–V11": ("V8", "V9", "V10", "V11")}


def write_page(record: Record, drawn: Mapping[str, SimulationResult], out: Path) -> Path:
    """Writes results.json, figure.png and page.md; returns the page's path."""
    runs = {name: lags(run, _GROUPS) for name, run in drawn.items()}
    figure = lag_figure(runs, "Paper 001, figure 9, measured: lag over time, seed 0")
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        page = out / "page.md"
        page.write_text(_page(record), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write into {out}: {error.strerror}", "Name a folder that can be written"
        ) from error
    save(figure, out / "figure.png")
    return page


def outcome(record: Record, policy: str, phases: str) -> Record:
    (found,) = (o for o in record["outcomes"] if o["policy"] == policy and o["phases"] == phases)
    return dict(found)


def _page(record: Record) -> str:
    lines = [
        "# Recovery after an outage: paper 001, figure 9",
        "",
        f"Freshline {__version__}, {record['seeds']} seeds (from 0). Made by "
        "`freshline experiment outage-recovery`.",
        "",
        "Two tracks. V1–V7 have a period of 300 s, V8–V14 one of 900 s, each with a feed of files without",
        "jitter; S = 0.01·p, R = 0.1, b = 0.2. The feeds of V1–V4 are down from 5,000 to 10,000 s; the run",
        "ends at 30,000 s. V5–V14 are the healthy tables. Times are in seconds.",
        "",
        "The paper does not give the phases of the feeds, and they matter. Uniform phases are whole seconds",
        "in [0, p), drawn for each feed and seed. With phase 0 the files of all 14 tables come together at",
        "every multiple of 900 s. PRP's clusters are under-determined in print: periods within a factor of",
        "10 (one cluster), or 1 (a cluster for each period). PRP and EDF know no provisioning.",
        "",
        "A lag is the trailing edge less the table's freshness. Without jitter, once a table has been",
        "loaded, it is a whole number of periods: 1 while a file waits or is loaded, 2 once the next one has",
        "come meanwhile. It is looked at over the whole run, not only while tables recover.",
        "",
        "![lag over time](figure.png)",
        "",
    ]
    for phases, title in _TITLES.items():
        lines += [f"## {title.capitalize()}", "", *_table(record, phases), ""]
    lines += ["## Promises of AUS", "", *_promises(record), ""]
    lines += ["## Paper and measurement side by side", "", *_claims(record), ""]
    lines += ["## Requirements (uniform phases)", "", *_requirements(record), ""]
    return "\n".join(lines)


def _table(record: Record, phases: str) -> list[str]:
    rows = [
        "| policy | recovery ended: mean | min | max | worst healthy lag, periods | seeds with one above 1 "
        "| longest above 1 | healthy tables behind until | over two periods behind (seeds) |",
        "|---|---:|---:|---:|---|---:|---:|---:|---|",
    ]
    rows += [_row(found, record["seeds"]) for found in record["outcomes"] if found["phases"] == phases]
    return rows


def _row(found: Record, seeds: int) -> str:
    longest_s = max(table["above_s_max"] for table in found["healthy"].values())
    until_s = max(table["behind_until_s"] or 0 for table in found["healthy"].values())
    cells = [
        found["policy"],
        *_ended(found),
        _worst_lag(found),
        f"{found['seeds_above_one']} of {seeds}",
        f"{longest_s:,.0f}" if longest_s else "–",
        f"{until_s:,.0f}" if until_s else "–",
        _over_two(found),
    ]
    return "| " + " | ".join(cells) + " |"


def _ended(found: Record) -> list[str]:
    """Mean, least and most; without a mean if a seed did not recover."""
    ended_s, failed = found["ended_s"], found["seeds_not_ended"]
    if ended_s is None:
        return ["not by 30,000"] * 3
    if failed:
        return [f"not by 30,000 in {failed} seeds", f"{ended_s['min']:,.0f}", "not by 30,000"]
    return [f"{ended_s[which]:,.0f}" for which in ("mean", "min", "max")]


def _worst_lag(found: Record) -> str:
    """The worst lag, and its tables."""
    lags = {name: table["lag_periods_max"] for name, table in found["healthy"].items()}
    worst = max(lags.values())
    return f"{worst:g}" if worst <= 1 else f"{worst:g} ({', '.join(n for n in lags if lags[n] == worst)})"


def _over_two(found: Record) -> str:
    over = {name: table["seeds_above_two"] for name, table in found["healthy"].items()}
    return ", ".join(f"{name} ({seeds})" for name, seeds in over.items() if seeds) or "none"


def _promises(record: Record) -> list[str]:
    rows = [
        "Theorem 4's time counts from a table's first release with p^[r], here for an outage of 5,000 s. AUS",
        "recovers one table at a time. So the promise is set beside the time from when the table before had",
        "recovered, or from the end of the outage. With average provisioning the bounds hold in expectation",
        "only.",
        "",
        "| policy | period | x | A(V) | p / p^[r] | Theorem 4 | measured, uniform: mean, max "
        "| measured, phase 0: mean, max |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for promised in record["promises"]:
        for period, of_period in promised.items():
            if period == "policy":
                continue
            measured = [
                _own(outcome(record, promised["policy"], phases)) if period == "300" else "–"
                for phases in _TITLES
            ]
            rows.append(
                f"| {promised['policy']} | {period} | {of_period['x_s']:.1f} "
                f"| {of_period['staleness_bound_s']:,.1f} | {of_period['periods_in_one']:.2f} "
                f"| {of_period['recovery_time_s']:,.0f} | {' | '.join(measured)} |"
            )
    return rows


def _own(found: Record) -> str:
    own_s = found["own_s"]
    return "–" if own_s is None else f"{own_s['mean']:,.0f}, {own_s['max']:,.0f}"


def _claims(record: Record) -> list[str]:
    rows = ["| the paper says | " + " | ".join(_TITLES.values()) + " |", "|---|---|---|"]
    average, worst = (promised["300"]["periods_in_one"] for promised in record["promises"])
    claims = {
        "PRP recovers all late tables by about 12,500": ("ends", ("PRP, factor 10", "PRP, factor 1")),
        "under PRP V8 and V9 fall far behind": ("over two", ("PRP, factor 10", "PRP, factor 1")),
        "under PRP V8 is restored only by 15,000": ("until", ("PRP, factor 10", "PRP, factor 1")),
        "average-case AUS ends by about 15,000": ("ends", ("AUS, average",)),
        "under AUS no healthy lag exceeds its period": ("above", ("AUS, average", "AUS, worst")),
        "worst-case AUS ends by 25,000": ("ends", ("AUS, worst",)),
        "in the worst case PRP ends by 15,000 (ours has no such setting)": (
            "ends",
            ("PRP, factor 10", "PRP, factor 1"),
        ),
    }
    for claim, (what, policies) in claims.items():
        cells = [
            "; ".join(f"{policy}: {_said(what, record, policy, phases)}" for policy in policies)
            for phases in _TITLES
        ]
        rows.append(f"| {claim} | " + " | ".join(cells) + " |")
    both = f"p/{average:.2f} and p/{worst:.2f}"
    rows.append(f"| p^[r] ≈ p/5 on average, p/3 at worst | {both} | {both} |")
    return [
        *rows,
        "",
        "Which other healthy tables fell over two periods behind is in the tables above.",
        "",
        "Recovery periods follow (7) with min where the print has max, since otherwise no table could ever",
        "recover. A table alone in recovery mode clears 5,000 s in about 5,000/(p/p^[r] − 1) s. So four of",
        f"them end at about {_four_in_turn_s(average):,.0f} (average) and {_four_in_turn_s(worst):,.0f} "
        "(worst).",
        f"The paper's p/3 would end at {_four_in_turn_s(3):,.0f}. By this reckoning its two figures for the",
        "worst case do not go together, and ours lies nearer to its 25,000.",
    ]


def _four_in_turn_s(periods_in_one: float) -> float:
    return 10_000 + 4 * 5_000 / (periods_in_one - 1)


def _said(what: str, record: Record, policy: str, phases: str) -> str:
    found = outcome(record, policy, phases)
    if what == "ends":
        mean, least, most = _ended(found)
        return mean if mean == least else f"{mean} ({least} to {most})"
    if what == "until":
        until_s = found["healthy"]["V8"]["behind_until_s"]
        return "never behind" if until_s is None else f"by {until_s:,.0f} at worst"
    if what == "over two":
        seeds = {name: found["healthy"][name]["seeds_above_two"] for name in ("V8", "V9")}
        named = " and ".join(f"{name} in {above}" for name, above in seeds.items())
        return f"over two periods: {named} of {record['seeds']} seeds"
    return f"above in {found['seeds_above_one']} of {record['seeds']} seeds, worst {_worst_lag(found)}"


def requirements(record: Record) -> list[tuple[str, str, bool]]:
    """The requirement, the measurement, and whether it is met; all with uniform phases."""
    aus, slack = (outcome(record, policy, "uniform") for policy in ("AUS, average", "AUS-slack, worst"))
    rows = [
        (
            "average-case AUS ends within 14,200 to 15,300 in all seeds",
            _said("ends", record, "AUS, average", "uniform"),
            _within(aus, "min", 14_200, 15_300) and _within(aus, "max", 14_200, 15_300),
        ),
        (
            "average-case AUS: no healthy lag above its period in any seed",
            _said("above", record, "AUS, average", "uniform"),
            aus["seeds_above_one"] == 0,
        ),
        (
            "AUS-slack (worst) ends by 13,100 on average and 13,600 at worst",
            _said("ends", record, "AUS-slack, worst", "uniform"),
            _within(slack, "mean", 0, 13_100) and _within(slack, "max", 0, 13_600),
        ),
        (
            "AUS-slack (worst): no healthy lag above its period in any seed",
            _said("above", record, "AUS-slack, worst", "uniform"),
            slack["seeds_above_one"] == 0,
        ),
    ]
    for policy in ("PRP, factor 10", "PRP, factor 1"):
        pushed = outcome(record, policy, "uniform")["seeds_above_two"]
        rows.append(
            (
                f"{policy}, pushes some healthy table over two periods behind in every seed",
                f"in {pushed} of {record['seeds']} seeds",
                pushed == record["seeds"],
            )
        )
    return rows


def _within(found: Record, which: str, least_s: float, most_s: float) -> bool:
    return not found["seeds_not_ended"] and least_s <= found["ended_s"][which] <= most_s


def _requirements(record: Record) -> list[str]:
    rows = ["| required | measured | met |", "|---|---|---|"]
    rows += [
        f"| {required} | {measured} | {'yes' if met else '**no**'} |"
        for required, measured, met in requirements(record)
    ]
    return rows
