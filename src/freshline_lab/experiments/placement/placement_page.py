"""The page and the figure of `freshline experiment placement`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure

from freshline import __version__
from freshline.base.errors import InputError

_STYLES: Final = {
    "DeadlineAlloc.EDF": ("#d62728", "o"),
    "ExistingAlloc.EDF": ("#1f77b4", "^"),
    "DeadlineAlloc.FIFO": ("#ff7f0e", "s"),
    "ExistingAlloc.FIFO": ("#7f7f7f", "v"),
}

_UNDER_DETERMINED: Final = """\
## What the paper leaves open, and what was chosen
Some of it was chosen with the paper's figures in view, so that those agree proves less than it seems.

- **When tuples come.** From other vehicles one every 0.5 ms from 0, the sensor's ten together 0.5 ms after
  the last, the centre's hundred just before 0. The paper says only which are before which. The spacing is
  fitted: with all at once ExistingAlloc.EDF misses 58.8 %.
- **What a call takes.** 1 ms × uniform[0.8, 1.2]; the paper gives the average.
- **What O3 drops.** The first, third and so on: of 15 tuples 7 pass.
- **What is counted.** Tuples of outputs 1 and 2. Output 3's hundred never miss 3 s, so with them neither
  40.9 nor 55.5 % could be; `all_outputs` has that rate too. The paper's Y/X is 1 − Y/X.
- **First in, first out** is over operators, by when the burst came to its source, then by when the
  operator's input was there: breadth first. By whole tasks it would lose 2 of output 2's 7 tuples, not all.
- **ExistingAlloc.EDF** has for each node's local output the sub-deadline of the paper's own placement: 30
  ms for (O2, O3), 270 ms for O4 to O21, shared by cost. With 30 for each of O2 and O3 it would miss
  nothing.
- **Deadlines** count from an instance's creation with the sub-deadlines up to the operator that is next;
  (12) counts all of the task's, which is unsafe at forks; no task of this query forks.
- In 5.4 the deadline "3+1" is 3+2, and in 4.1 p3 takes 200 ms although it is said to wait at O6."""


def write_page(record: dict[str, Any], into: Path) -> Path:
    """Writes results.json, figure.png and page.md; returns the page's path."""
    with _written(into):
        (into / "results.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        _figure(record).savefig(into / "figure.png", dpi=90)
        page = into / "page.md"
        page.write_text(page_of(record), encoding="utf-8")
    return page


def write_live_page(record: dict[str, Any], paper: Mapping[str, float], into: Path) -> Path:
    """Writes live.json and live.md; returns the page's path."""
    with _written(into):
        (into / "live.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        page = into / "live.md"
        page.write_text("\n".join(_live_page(record, paper)) + "\n", encoding="utf-8")
    return page


@contextmanager
def _written(into: Path) -> Iterator[None]:
    try:
        into.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise InputError(
            f"cannot write into {into}: {error.strerror}", "Name a folder that can be written"
        ) from error


def _live_page(record: dict[str, Any], paper: Mapping[str, float]) -> Iterator[str]:
    yield "# Deadlines across nodes, live on Spark: paper 002, figure 7 at 15 tuples"
    yield ""
    yield (
        f"Two nodes (`local[1]`), time stretched {record['stretch']}-fold: a call of an operator is Spark's "
        "job, and sleep for the rest. One trial a method. Made by `freshline experiment placement --live`."
    )
    yield ""
    yield "Percent missed of outputs 1 and 2 together, of each, and of all three."
    yield ""
    yield "| method | paper | live | output 1 | output 2 | all |"
    yield "|---|---:|---:|---:|---:|---:|"
    for each in record["miss_rates"]:
        shares = (each[kind] for kind in ("miss_rate", "output1", "output2", "all_outputs"))
        figures = " | ".join(f"{share:.1f}" for share in shares)
        yield f"| {each['method']} | {paper[each['method']]} | {figures} |"
    yield ""
    yield f"In the paper's order: {'yes' if record['in_order'] else '**no**'}."


def page_of(record: dict[str, Any]) -> str:
    """Paper and measurement side by side, and what the paper leaves open."""
    return "\n".join(_page(record)) + "\n"


def _figure(record: dict[str, Any]) -> Figure:
    """Figure 7: miss rates over the tuples from other vehicles."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for method, (colour, marker) in _STYLES.items():
        rates = [each for each in record["miss_rates"] if each["method"] == method]
        axes.plot(
            [each["v2v"] for each in rates],
            [each["miss_rate"] for each in rates],
            color=colour,
            marker=marker,
            markersize=4,
            label=method,
        )
        axes.plot(record["paper"]["v2v"], record["paper"]["miss_rates"][method], "x", color=colour)
    axes.set(xlabel="tuples from other vehicles", ylabel="deadlines missed, % (x: the paper at 15)")
    axes.legend()
    return figure


def _page(record: dict[str, Any]) -> Iterator[str]:
    placement, paper, schedules = record["placement"], record["paper"], record["schedules"]
    yield "# Paper 002: placement, sub-deadlines and scheduling"
    yield ""
    yield (
        f"Freshline {__version__}, `freshline experiment placement`, simulated, {record['trials']} trials "
        "for each point. Kernel, orders and placement are those of `freshline run`; a burst is a tuple."
    )
    yield ""
    yield "## Placement"
    yield "| | paper | here |"
    yield "|---|---|---|"
    yield f"| O3 by deadlines | node 2 | {_node(placement['deadline']['O3'])} |"
    yield f"| O3 by traffic and load (SQPR) | node 1 | {_node(placement['sqpr']['O3'])} |"
    for name, paper_ms in paper["sub_deadlines_ms"].items():
        yield f"| sub-deadline of {name}, ms | {paper_ms} | {placement['sub_deadlines_ms'][name]:.4g} |"
    for node, objective in placement["objective"].items():
        yield f"| objective with O3 on {_node(node)} | - | {objective:.4g} |"
    yield ""
    yield "## Figures 3 and 4: latencies of p1 and p2, ms"
    yield "| | paper | p1 | p2 |"
    yield "|---|---|---|---|"
    printed = {
        "figure 3, p2 first": "p1 50",
        "figure 3, p1 first": "p2 310",
        "figure 4": "p1 30, p2 300",
        "figure 4, first in, first out": "p2 waits for 180 more",
    }
    for name, latency in schedules.items():
        yield f"| {name} | {printed[name]} | {latency['p1']:g} | {latency['p2']:g} |"
    yield ""
    yield "Figure 6 is a test, instant by instant (`tests/kernel/steps/test_step_tasks.py`)."
    yield ""
    yield "## Figure 7: deadlines missed, %"
    yield "![miss rates over tuples from other vehicles](figure.png)"
    yield ""
    yield "| tuples | " + " | ".join(_STYLES) + " |"
    yield "|---|" + "---|" * len(_STYLES)
    by_tuples: dict[int, dict[str, float]] = {}
    for each in record["miss_rates"]:
        by_tuples.setdefault(each["v2v"], {})[each["method"]] = each["miss_rate"]
    for tuples, rates in by_tuples.items():
        if tuples in (1, 5, 10, 15, 20, 25, 30):
            yield f"| {tuples} | " + " | ".join(f"{rates[method]:.1f}" for method in _STYLES) + " |"
    yield "| paper, 15 | " + " | ".join(f"{paper['miss_rates'][method]:g}" for method in _STYLES) + " |"
    yield ""
    yield "| required | measured | |"
    yield "|---|---|---|"
    for each in record["requirements"]:
        yield f"| {each['required']} | {each['measured']} | {'met' if each['met'] else '**not met**'} |"
    yield ""
    yield _UNDER_DETERMINED


def _node(name: str) -> str:
    return name.replace("node", "node ")
