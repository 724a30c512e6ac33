"""Places random plans: small ones against the paper's own programme, large ones against the clock.

Times are of the processor, since others may use the machine; `glpsol` (glpk-utils) is asked if it is there.

    .venv/bin/python benchmarks/placement.py --small 1000
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from math import inf
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

from freshline.planning.placement.bounds import bounds_within
from freshline.planning.placement.mip import objective_model
from freshline.planning.placement.place import place
from freshline.planning.placement.placement import Placement
from freshline.planning.placement.plan import PlacementPlan
from freshline.planning.placement.programme import programme_of
from freshline.planning.placement.solver import Solver
from freshline.planning.placement.sub_deadlines import SubDeadlineRule
from freshline_lab.campaigns.placement.paper_placement import paper_objective, paper_programme, paper_stretch
from freshline_lab.campaigns.placement.placement_plans import large_plan, overloaded_plan, small_plan

# operators, nodes, deadlines over Σ c from and to, seconds, the largest gap, of ten seeds so many
SCALE = (
    (50, 5, 4, 40, 1, 0.0, 10),
    (200, 20, 4, 40, 10, 0.0, 10),
    (1000, 50, 4, 40, 60, 0.0, 10),
    (200, 20, 2.5, 20, 60, 0.05, 8),
)
SECONDS_TO_PROVE = 10
TIMES_FASTER_THAN_GLPK = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", type=int, default=300, help="how many small plans")
    parser.add_argument("--seeds", type=int, default=10, help="of each kind of large plans")
    parser.add_argument("--glpk", type=int, default=3, help="how many plans of 50 operators for GLPK")
    arguments = parser.parse_args()
    passed = against_paper(range(arguments.small))
    for operators, nodes, least, most, seconds, gap_most, enough in SCALE:
        print(f"{operators} operators on {nodes} nodes, deadlines {least:g} to {most:g} times:")
        plans = [large_plan(seed, operators, nodes, least, most) for seed in range(arguments.seeds)]
        found = [timed(plan, seconds) for plan in plans]
        good = sum(took <= seconds and each.gap is not None and each.gap <= gap_most for each, took in found)
        print(f"  gap at most {gap_most:.0%} within {seconds} s: {good} of {len(found)}")
        print(f"  {told(found)}")
        passed &= good >= enough * len(found) / 10
    found = [timed(overloaded_plan(seed, 200, 20), 60) for seed in range(arguments.seeds)]
    proven = sum(each.status == "infeasible" and took <= SECONDS_TO_PROVE for each, took in found)
    print(f"200 operators on 20 nodes, a node with too much pinned to it: {proven} of {len(found)} proven")
    print(f"  {told(found)}")
    passed &= proven == len(found)
    if arguments.glpk:
        passed &= against_glpk(range(arguments.glpk))
    print("as required" if passed else "NOT as required")
    sys.exit(not passed)


def timed(plan: PlacementPlan, limit_s: float) -> tuple[Placement, float]:
    before = process_time()
    found = place(plan, limit_s)
    return found, process_time() - before


def told(found: Iterable[tuple[Placement, float]]) -> str:
    found = list(found)
    times = [took for _, took in found]
    statuses = Counter(each.status for each, _ in found)
    objectives = [each.objective for each, _ in found if each.objective]
    left = f", objectives above 0: {', '.join(f'{each:.3g}' for each in objectives)}" if objectives else ""
    return f"CPU {min(times):.2f} to {max(times):.2f} s, {dict(statuses)}{left}"


def against_paper(seeds: Iterable[int]) -> bool:
    """Objective to 1e-4, infeasible where that is, stretch within 1 %."""
    kinds: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        plan = small_plan(seed)
        found, paper = place(plan), paper_objective(plan)
        if paper.values is not None:
            kinds["in time"] += 1
            kinds["of them with an objective above 0"] += paper.bound > 1e-6
            same = found.objective is not None and abs(found.objective - paper.bound) <= 1e-4 * max(
                1, paper.bound
            )
            same &= found.status == "optimal"
        else:
            least = paper_stretch(plan).bound
            kinds["infeasible"] += 1
            kinds["of them by links alone"] += least == inf
            stretch = found.infeasible.stretch if found.infeasible is not None else None
            same = found.status == "infeasible" and (
                stretch is None if least == inf else stretch is not None and abs(stretch / least - 1) <= 0.01
            )
        if not same:
            wrong.append(seed)
    print(f"small plans against the paper's own programme: {dict(kinds)}; other results: {wrong or 'none'}")
    return not wrong


def against_glpk(seeds: Iterable[int]) -> bool:
    """50 operators on 5 nodes: this, and both solvers on the paper's programme and on this one's."""
    passed = True
    for seed in seeds:
        plan = large_plan(seed, 50, 5, 4, 40)
        programme = programme_of(plan)
        rule = SubDeadlineRule(programme)
        ours = objective_model(programme, rule, bounds_within(programme, rule))
        _, took = timed(plan, 60)
        times = {"place": took}
        for name, model in (("the paper's programme", paper_programme(plan)), ("without x, y, l", ours)):
            before = process_time()
            model.solve(None, 60)
            times[f"HiGHS on {name}"] = process_time() - before
            glpk = glpk_seconds(model)
            if glpk is not None:
                times[f"GLPK on {name}"] = glpk
        print(f"50 × 5, seed {seed}: " + ", ".join(f"{name} {took:.3f} s" for name, took in times.items()))
        glpk = times.get("GLPK on the paper's programme")
        passed &= glpk is None or glpk >= TIMES_FASTER_THAN_GLPK * times["place"]
    return passed


def glpk_seconds(model: Solver) -> float | None:
    """What GLPK takes for it, at most 60 s; None where there is no GLPK."""
    if shutil.which("glpsol") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "programme.mps"
        model.loaded().writeModel(str(file))
        before = getrusage(RUSAGE_CHILDREN).ru_utime
        subprocess.run(
            ["glpsol", "--freemps", str(file), "--tmlim", "60"], stdout=subprocess.DEVNULL, check=True
        )
        return getrusage(RUSAGE_CHILDREN).ru_utime - before


if __name__ == "__main__":
    main()
