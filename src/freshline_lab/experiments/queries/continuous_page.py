"""The page and the figures of `freshline experiment continuous-queries`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from freshline import __version__
from freshline.base.errors import InputError
from freshline.pictures.figures import save
from freshline_lab.experiments.queries.query_rate_pictures import MEASURES, rates_figure

Record = dict[str, Any]

_TITLES: Final = {
    "cycle": "Figure 8: one cycle",
    "steady": "Figure 9: steady",
    "step": "Figure 10: steps",
    "random": "Figure 11: random",
    "trace": "Figure 11: trace",
}
# A smaller number of queries than Table 2's is a light load.
_QUERIES: Final = 10
_STEADY_SHARES: Final = {"rm": 0.476, "hpf": 0.484, "lrm-paper": 0.399}


def write_page(record: Record, into: Path) -> Path:
    """Adds the requirements to the record; writes results.json, the figures and page.md."""
    record["requirements"] = [
        {"required": required, "measured": measured, "met": met}
        for required, measured, met in _requirements(record)
    ]
    if "live" in record:
        record["requirements"] += record["live"].pop("requirements")
    try:
        into.mkdir(parents=True, exist_ok=True)
        (into / "results.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        page = into / "page.md"
        page.write_text(page_of(record), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write into {into}: {error.strerror}", "Name a folder that can be written"
        ) from error
    over_time = {
        _TITLES[workload["name"]]: {
            measure: {
                found["policy"]: [(point["t"], point[measure]) for point in found["over_time"]]
                for found in workload["policies"]
            }
            for measure in MEASURES
        }
        for workload in record["workloads"]
    }
    save(
        rates_figure(over_time, "time (seconds)", "Paper 000, figures 8 to 11, measured"), into / "figure.png"
    )
    policies = [found["policy"] for found in record["query_load"][0]["policies"]]
    by_load = {
        "Figure 12": {
            measure: {
                policy: [(load["queries"], _of(load, policy)[measure]) for load in record["query_load"]]
                for policy in policies
            }
            for measure in MEASURES
        }
    }
    save(rates_figure(by_load, "queries", "Paper 000, figure 12, measured"), into / "query_load.png")
    return page


def page_of(record: Record) -> str:
    """The page, made from the results only."""
    runs = max(workload["runs"] for workload in record["workloads"])
    lines = [
        "# Continuous queries under overload: paper 000, figures 8 to 12",
        "",
        f"Freshline {__version__}, seed {record['seed']}, {runs} runs of what is random. Made by "
        "`freshline experiment continuous-queries`.",
        "",
        "Table 2's ten queries on one track, 20 s (one cycle: 6 s). `rm` preempts and lets late iterations",
        "run on; `hpf` does the same without preemption. `lrm-paper` reads shares of the windows by the",
        "paper's rule; `lrm` gives each iteration a budget by the rule `least-error` (docs/lrm.md). Both",
        "reschedule every longest stride unless something else is said.",
        "",
        "Not in print, and chosen: windows as long as strides, a selectivity of 0.5 for each select and",
        "join, first releases at 0 with full windows. Steady streams have 12,500 tuples a second, steps",
        "begin at 7,500 and get a tenth of that more every second; random rates, drawn anew every 0.1 s,",
        f"are exponentially distributed around 10,000.{_trace(record)}",
        "",
        "Of the iterations due: the miss rate is the share unfinished at the deadline, the completion rate",
        "that finished by the end, late or not, the total error Σ g·s·(tuples unprocessed at the deadline),",
        "and the error share that over Σ g·s·w.",
        "",
        "![over time](figure.png)",
        "",
    ]
    for workload in record["workloads"]:
        lines += [f"## {_TITLES[workload['name']]}", "", *_workload(workload), ""]
    lines += ["## When to reschedule", "", *_rescheduling(record["rescheduling"]), ""]
    lines += ["## Figure 12: query load", "", "![query load](query_load.png)", "", *_query_load(record), ""]
    lines += ["## Shedding of random sets", "", *_shedding(record["shedding"]), ""]
    if "live" in record:
        lines += ["## Live on Spark", "", *_live(record["live"]), ""]
    lines += ["## Paper and measurement side by side", "", *_claims(record), ""]
    lines += ["## Requirements", "", *_required(record), ""]
    return "\n".join(lines)


def _trace(record: Record) -> str:
    trace = record["trace"]
    if trace is None:
        return ""
    return (
        f" The trace is {trace['file']}\n({trace['arrivals']:,} arrivals in {trace['length']:,.0f} s), "
        "scaled to 10,000 tuples a second on average."
    )


def _workload(workload: Record) -> list[str]:
    runs = "1 run" if workload["runs"] == 1 else f"{workload['runs']} runs"
    return [
        f"Demand {workload['demand']:.2f} tracks, {runs}.",
        "",
        "| policy | miss rate | worst run | completion rate | total error | error share | reschedulings |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(f"| {found['policy']} | {_cells(found)} |" for found in workload["policies"]),
    ]


def _rescheduling(found: list[Record]) -> list[str]:
    return [
        "`optimistic`: every longest stride; `pessimistic`: at every completion; `permissive`: when the",
        "weighted error since the last time is above 200,000.",
        "",
        "| workload | policy | rescheduling | miss rate | worst run | completion rate | total error "
        "| error share | reschedulings |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {each['workload']} | {each['policy']} | {each['rescheduling']} | {_cells(each)} |"
            for each in found
        ),
    ]


def _cells(found: Record) -> str:
    rates = [f"{found[key]:.1%}" for key in ("miss_rate", "miss_rate_worst", "completion_rate")]
    cells = [
        *rates,
        f"{found['total_error']:,.0f}",
        f"{found['error_share']:.3f}",
        f"{found['reschedules']:g}",
    ]
    return " | ".join(cells)


def _query_load(record: Record) -> list[str]:
    policies = [found["policy"] for found in record["query_load"][0]["policies"]]
    rows = [
        "Miss rate and error share. Beyond ten queries Table 2 comes again.",
        "",
        "| queries | demand | " + " | ".join(policies) + " |",
        "|---:|---:|" + "---:|" * len(policies),
    ]
    for load in record["query_load"]:
        cells = [f"{found['miss_rate']:.1%}, {found['error_share']:.3f}" for found in load["policies"]]
        rows.append(f"| {load['queries']} | {load['demand']:.2f} | " + " | ".join(cells) + " |")
    return rows


def _shedding(found: Record) -> list[str]:
    rows = [
        f"{found['sets']:,} sets of 3 to 10 queries that ask for 1.05 to 2.5 tracks. As the paper prints",
        f"its algorithm, the exact test passes afterwards in {found['as_printed']:,} of them. With the",
        "reductions applied to all queries of the priority and above, clamped and rounded:",
        "",
        "| rule | exact test passes | error over the paper's rule: mean | worst |",
        "|---|---:|---:|---:|",
    ]
    for rule, passes in found["schedulable_after"].items():
        over = found["error_over_paper"][rule]
        of = f" of {found['sets_with_best']:,}" if rule == "best" else ""
        rows.append(f"| {rule} | {passes:,}{of} | {over['mean']:.3f} | {over['worst']:.3f} |")
    return rows


def _live(live: Record) -> list[str]:
    rows = [
        f"Table 2's kinds over three tables, {live['seconds']} s a policy. Strides are "
        f"{live['strides_longer']:.2f} times twice the",
        f"paper's, windows {live['strides_in_window']} strides long; {live['rows_a_second']:,} rows a second "
        "come to each table. By what answers",
        f"cost alone the queries ask for {live['demand']:.2f} of a track; loading takes "
        f"{live['loading']:.2f} of another. The first cycle",
        "is as long as the longest stride. Of a late iteration all counts as lost that was read after the",
        "deadline, if it ran on to its end from then on.",
        "",
        "| policy | iterations | miss rate | after the first cycle | completion rate | error share | busy "
        "| misses put down to |",
        "|---|---:|---:|---:|---:|---:|---:|---|",
    ]
    for found in live["policies"]:
        after = found["miss_rate_after_first_cycle"]
        cells = [
            str(found["iterations"]),
            f"{found['miss_rate']:.1%}",
            "-" if after is None else f"{after:.1%}",
            f"{found['completion_rate']:.1%}",
            f"{found['error_share']:.3f}",
            f"{found['busy']:.2f}",
            ", ".join(f"{count} {why}" for why, count in found["causes"].items()) or "-",
        ]
        rows.append(f"| {found['policy']} | " + " | ".join(cells) + " |")
    notes = [f"- {found['policy']}: {found['noise']}" for found in live["policies"]]
    return [*rows, "", *notes]


def _claims(record: Record) -> list[str]:
    by_name = {workload["name"]: workload for workload in record["workloads"]}
    claims = [
        ("LRM misses no deadline in the first cycle", "cycle", "miss_rate"),
        ("under steady load LRM misses a small fraction later on", "steady", "miss_rate"),
        ("under steps LRM misses more than under steady load, RM and HPF many more", "step", "miss_rate"),
        ("under random load LRM limits the miss rate to around 2 %", "random", "miss_rate"),
        ("under random load the error is much higher for RM and HPF", "random", "error_share"),
        ("LRM consistently completes more queries", "step", "completion_rate"),
    ]
    rows = ["| the paper says | measured |", "|---|---|"]
    for claim, name, key in claims:
        figures = ", ".join(
            f"{found['policy']} {found[key]:.3f}"
            if key == "error_share"
            else f"{found['policy']} {found[key]:.1%}"
            for found in by_name[name]["policies"]
        )
        rows.append(f"| {claim} | {key.replace('_', ' ')}: {figures} |")
    return [
        *rows,
        "",
        "The paper prints no number but that of 2 %; its figures are curves. Its LRM is `lrm-paper`.",
    ]


def _of(workload: Record, policy: str) -> Record:
    (found,) = (each for each in workload["policies"] if each["policy"] == policy)
    return dict(found)


def _requirements(record: Record) -> Iterator[tuple[str, str, bool]]:
    """The requirement, the measurement, and whether it is met."""
    by_name = {workload["name"]: workload for workload in record["workloads"]}
    bursty = [by_name[name] for name in ("random", "trace") if name in by_name]
    loads = record["query_load"]
    every_lrm = [
        each
        for found in (*(w["policies"] for w in (*by_name.values(), *loads)), record["rescheduling"])
        for each in found
        if each["policy"] == "lrm"
    ]
    worst = max(each["miss_rate_worst"] for each in every_lrm)
    yield (
        "lrm misses nothing in any workload, run or rescheduling policy",
        f"{worst:.1%} at worst",
        worst == 0,
    )
    first = _of(by_name["cycle"], "lrm-paper")["miss_rate"]
    yield "lrm-paper misses nothing in the first cycle", f"{first:.1%}", first == 0
    for workload in bursty:
        missed = _of(workload, "lrm-paper")["miss_rate"]
        yield f"lrm-paper misses at most 2 % under {workload['name']}", f"{missed:.1%}", missed <= 0.02
    yield _late_without_shedding([*by_name.values()], loads)
    for policy, share in _STEADY_SHARES.items():
        found = _of(by_name["steady"], policy)["error_share"]
        yield f"steady: error share of {policy} {share}", f"{found:.3f}", abs(found - share) < 0.0006
    found = _of(by_name["steady"], "lrm")["error_share"]
    yield "steady: error share of lrm at most 0.23", f"{found:.3f}", found <= 0.23
    (step,) = (
        each["error_share"]
        for each in record["rescheduling"]
        if (each["workload"], each["policy"], each["rescheduling"]) == ("step", "lrm", "pessimistic")
    )
    yield "step, pessimistic: error share of lrm at most 0.26", f"{step:.3f}", step <= 0.26
    if "trace" in by_name:
        yield from _of_trace(by_name["trace"])
    yield from _of_sets(record["shedding"])


def _late_without_shedding(workloads: list[Record], loads: list[Record]) -> tuple[str, str, bool]:
    def least(of: list[Record]) -> float:
        return min(float(_of(each, policy)["miss_rate"]) for each in of for policy in ("rm", "hpf"))

    heavy = least([*workloads, *(load for load in loads if load["queries"] >= _QUERIES)])
    light = ", ".join(
        f"{least([load]):.1%} of {load['queries']}" for load in loads if load["queries"] < _QUERIES
    )
    required = f"rm and hpf miss 8 % and more but in light query loads (below {_QUERIES} queries)"
    return required, f"{heavy:.1%} at least; light: {light}", heavy >= 0.08


def _of_trace(workload: Record) -> Iterator[tuple[str, str, bool]]:
    of_lrm = _of(workload, "lrm")["error_share"]
    for policy, most in (("lrm-paper", 0.5), ("rm", 0.45), ("hpf", 0.45)):
        ratio = of_lrm / _of(workload, policy)["error_share"]
        yield f"trace: error share of lrm at most {most} of {policy}'s", f"{ratio:.3f}", ratio <= most


def _of_sets(found: Record) -> Iterator[tuple[str, str, bool]]:
    after = found["schedulable_after"]
    yield (
        "the exact test passes after shedding in every set under every rule",
        ", ".join(f"{rule} {passes:,}" for rule, passes in after.items()),
        all(
            passes == found["sets_with_best" if rule == "best" else "sets"] for rule, passes in after.items()
        ),
    )
    printed = found["as_printed"] / found["sets"]
    yield "as printed in under 1 %", f"{printed:.2%}", printed < 0.01
    over = found["error_over_paper"]["least-error"]
    yield (
        "least-error at most 0.55 of the paper's error on average, never above it",
        f"{over['mean']:.3f}, at worst {over['worst']:.3f}",
        over["mean"] <= 0.55 and over["worst"] <= 1,
    )
    over = found["least_error_over_best"]
    yield (
        f"least-error within 1 % of best on average ({found['sets_with_best']:,} sets)",
        f"{over['mean']:.4f}, at worst {over['worst']:.3f}",
        over["mean"] <= 1.01,
    )


def _required(record: Record) -> list[str]:
    rows = ["| required | measured | met |", "|---|---|---|"]
    rows += [
        f"| {each['required']} | {each['measured']} | {'yes' if each['met'] else '**no**'} |"
        for each in record["requirements"]
    ]
    return rows
