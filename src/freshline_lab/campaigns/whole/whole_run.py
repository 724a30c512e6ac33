"""Plans, simulates and replays a whole warehouse, and compares the run with all that was proven."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from traceback import extract_tb

from freshline.cli.printing.outputs import with_placement
from freshline.definitions.load import loads
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.plan import Plan
from freshline.simulation.classes import ClassResult
from freshline.simulation.conditions.conditions import Conditions
from freshline.simulation.kinds import KindResults
from freshline_lab.campaigns.recovery.recoveries import RecoveryReport, run_planned
from freshline_lab.campaigns.whole.documents import whole_text
from freshline_lab.campaigns.whole.excused import excused_steps, excused_tables
from freshline_lab.campaigns.whole.faults import END, random_conditions
from freshline_lab.campaigns.whole.output_proofs import wrong_proofs
from freshline_lab.campaigns.whole.report import WholeReport
from freshline_lab.campaigns.whole.steps_once import steps_not_once


class Results(KindResults):
    """The results of a run, by kind."""

    def __init__(self, report: RecoveryReport) -> None:
        self.seen = report.results


def planned(text: str) -> Plan:
    """The plan of a file, as `freshline plan` makes it of declared costs."""
    return with_placement(make_plan(loads(text)), {})


def check_whole(seed: int) -> WholeReport:
    """Plans, simulates and replays the warehouse of that seed. An exception is a finding too."""
    found = WholeReport(seed)
    try:
        _compare(found, planned(whole_text(seed)))
    except Exception as error:
        at = extract_tb(error.__traceback__)[-1]
        found.wrong.append(f"exception: {type(error).__name__} at {at.filename}:{at.lineno}: {error}")
    return found


def _compare(found: WholeReport, plan: Plan) -> None:
    found.wrong += wrong_proofs(plan)
    conditions = random_conditions(plan.warehouse, found.seed)
    log = io.StringIO()
    excused = excused_tables(plan, conditions)
    run = run_planned(plan, conditions, END, found.seed, log, found.seed % 3 == 1, excused)
    found.wrong += [f"table: {what}" for what in run.wrong]
    results = Results(run)
    found.wrong += _tables(results)
    found.wrong += _queries(found.counts, plan, conditions, results)
    found.wrong += _outputs(found.counts, plan, conditions, results)
    found.wrong += _classes(found.counts, results)
    header, *calls = map(json.loads, log.getvalue().splitlines())
    found.wrong += steps_not_once(plan.warehouse, calls)
    agreed, difference = replay(kernel_of(header), calls, header)
    if difference is not None:
        found.wrong.append(f"replay: call {agreed + 1} of {len(calls)} differs: {difference}")
    found.counts += Counter(
        {
            "tables": len(plan.tables),
            "bounds": sum(table.staleness_bound_us is not None for table in plan.tables),
            "updates": run.jobs,
            "failures": run.failures,
            "crashes": run.crashes,
            "recoveries": len(run.recoveries),
            "promises": sum(recovery.due is not None for recovery in run.recoveries),
            "calls replayed": len(calls),
        }
    )


def _tables(results: Results) -> Iterator[str]:
    for table in results.tables:
        if table.exceeded_bound:
            what = f"{table.asserted_max_us} > {table.plan.staleness_bound_us}"
            yield f"bound: simulate says that {table.plan.name} exceeded it, {what}"


def _queries(counts: Counter[str], plan: Plan, conditions: Conditions, results: Results) -> Iterator[str]:
    slow = {name for name, factor in conditions.slow.items() if factor > 1}
    slow_pools = {query.plan.pool for query in results.queries if query.plan.name in slow}
    for query in results.queries:
        # The shares of `lrm-paper` are no promise.
        policy = plan.warehouse.pools[query.plan.pool].policy
        planned = query.plan.holds and policy == "rm" and query.plan.pool not in slow_pools
        counts["queries"] += 1
        counts["queries proven"] += planned or query.is_proven
        counts["iterations"] += query.iterations
        if query.broke_proof or (planned and query.misses):
            yield f"query: {query.plan.name} missed {query.misses} of {query.iterations} deadlines"
        bound_us, worst_us = query.plan.response_bound_us, query.response_max_us
        if planned and bound_us is not None and worst_us is not None and worst_us > bound_us:
            yield f"query: {query.plan.name} took {worst_us}, at most {bound_us} was proven"


def _outputs(counts: Counter[str], plan: Plan, conditions: Conditions, results: Results) -> Iterator[str]:
    proven = {output.name for output in plan.outputs if output.holds}
    excused = excused_steps(plan, conditions)
    counts["outputs"] += len(plan.outputs)
    counts["outputs proven"] += len(proven)
    counts["outputs compared"] += len(proven - excused)
    for output in results.outputs:
        if output.name in proven - excused and output.misses:
            yield f"output: {output.name} has {output.misses} of {output.rows} rows after its deadline"
        elif output.broke_proof:
            yield f"output: {output.name} broke a proof, its last recovery is {output.recovery}"
        counts["recoveries of outputs"] += output.recovery is not None
        counts["promises of outputs"] += output.recovery is not None and output.recovery.due is not None
    if len(proven) < len(plan.outputs):
        return
    for step in results.steps:
        if step.name not in excused and step.misses:
            yield f"sub-deadline: {step.name} missed {step.misses} of {step.jobs}"


def _classes(counts: Counter[str], results: Results) -> Iterator[str]:
    for each in results.of(ClassResult):
        asked = each.counts
        counts["requests"] += asked.requests
        numbers = (asked.open, asked.rejected, asked.answered, asked.lost, asked.in_time)
        if min(numbers) < 0 or asked.in_time > asked.answered:
            yield f"class: {each.name} counts {asked}"
        if each.utilization > 1 + 1e-9:
            yield f"class: {each.name} used {each.utilization} of its tracks"
