"""`freshline apply` while the track is overloaded: who comes, is refused and goes, and whether others notice.

Paper 000's queries but the last one run under `lrm`, as in `freshline experiment continuous-queries --live`.
After a while the run is sent an edited file: the last query comes, one that fits nowhere is refused, another
one goes. The same without the edit is beside it. The others are to miss nothing by it.

    .venv/bin/python benchmarks/apply_under_load.py --seconds 90
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

from freshline_lab.experiments.queries.live_queries import POLICIES, QUERIES, FileEdit, calibrate, run_policy
from freshline_lab.experiments.queries.live_table_2 import QuerySizes, project, sizes

# Most of its stride whatever it reads: beside the others that is too much, and a longer stride would do.
IMPOSSIBLE = (
    '  impossible: {sql: "SELECT count(*) AS n FROM s1", window: 600ms, stride: 600ms, '
    "cost: {startup: 500ms}, part: 100ms, pool: queries}\n"
)


def edited(sized: QuerySizes, after_s: float) -> tuple[QuerySizes, FileEdit]:
    """The queries to begin with, and the edit after which the last comes and the one before it is gone."""
    *others, going, coming = sized.queries
    text = project((*others, coming), sized.rows_a_second, POLICIES["lrm"]) + IMPOSSIBLE
    return replace(sized, queries=(*others, going)), FileEdit(
        after_s, text, frozenset(each.name for each in others)
    )


def show(title: str, found: dict[str, Any], after_s: float) -> int:
    """Says how the others fared; how many answers they missed after the edit."""
    missed = [miss for miss in found["misses"] if miss["released"] >= after_s]
    print(
        f"{title}: others missed {len(found['misses'])} of {found['iterations']} answers, {len(missed)} "
        f"after the edit; error share {found['error_share']:.3f}; {found['looks']} looks"
    )
    for miss in found["misses"]:
        print(f"  {miss['query']}, released at {miss['released']:.1f} s: {miss['because']}")
    print(f"  {found['noise']}", flush=True)
    return len(missed)


def _apart(what: Callable[..., Any], *arguments: object) -> Any:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        return executor.submit(what, *arguments).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=90)
    arguments = parser.parse_args()
    costs, updates = _apart(calibrate, QUERIES)
    after_s = arguments.seconds / 3
    sized, edit = edited(sizes(costs, updates), after_s)
    never = replace(edit, after_s=2.0 * arguments.seconds)
    before = show("without an edit", _apart(run_policy, "lrm", sized, arguments.seconds, never), after_s)
    found = _apart(run_policy, "lrm", sized, arguments.seconds, edit)
    (answer,) = found["applied"]
    print(f"after {after_s:.0f} s: {answer}")
    missed = show("with it", found, after_s)
    (refused,) = answer["refused"]
    as_asked = (answer["admitted"], answer["removed"], refused["name"]) == (["Q10"], ["Q9"], "impossible")
    passed = as_asked and refused["period_least"] is not None and missed <= before
    print("as required" if passed else "NOT as required")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
