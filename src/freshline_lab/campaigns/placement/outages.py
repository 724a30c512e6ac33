"""Outages beside healthy outputs: these stay in time, and the late ones get all rows within the promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from random import Random
from typing import Final, TextIO

from freshline.base.duration import MINUTE
from freshline.kernel.core.events import Event, Instruction, Record, Start
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.steps.job import StepJob
from freshline.kernel.steps.task import steps_of
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.step_graph import StepGraph
from freshline.planning.plan.step_placement import StepPlacement
from freshline.planning.plan.step_recovery import StepRecovery
from freshline.simulation.conditions.conditions import checked
from freshline.simulation.conditions.outages import Outage
from freshline.simulation.simulated_run import SimulatedRun, files_of, header_of
from freshline.simulation.steps import OutputResult
from freshline_lab.campaigns.placement.output_projects import output_project

OUTAGES_US: Final = (5 * MINUTE, 20 * MINUTE)


@dataclass
class OutageTrial:
    """A project that was simulated with an outage of one feed."""

    plan: Plan
    feed: str
    outage: Outage
    backlog: int  # files
    outputs: tuple[OutputResult, ...] = ()
    # By proven output of that feed: when its recovery must be over, and was.
    promised_us: dict[str, int] = field(default_factory=dict)
    recovered_us: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)  # sentences on ranges or files that no commit has

    @property
    def healthy(self) -> set[str]:
        """The proven outputs without that feed that share a node with a step of it."""
        graph, placed = StepGraph(self.plan.warehouse), _placed(self.plan)
        late = {placed.nodes[name] for name, feeds in graph.feeds.items() if self.feed in feeds}
        return {
            output.name
            for output in self.plan.outputs
            if output.holds
            and self.feed not in graph.feeds[output.name]
            and not late.isdisjoint(placed.nodes[name] for name in graph.upstream[output.name])
        }

    @property
    def worst_share(self) -> float:
        """The age of the oldest row of these outputs, by its deadline."""
        healthy = self.healthy
        return max(
            ((each.latency_max_us or 0) / each.deadline_us for each in self.outputs if each.name in healthy),
            default=0.0,
        )

    @property
    def broken(self) -> list[str]:
        """What was proven and did not hold."""
        late = [output.name for output in self.outputs if output.broke_proof]
        found = [f"output {name} missed its deadline" for name in late]
        for name, promised_us in self.promised_us.items():
            took_us = self.recovered_us.get(name)
            if took_us is None or took_us > promised_us:
                found.append(f"output {name} recovered in {took_us} us, {promised_us} were promised")
        return found + self.lost


def outage_plan(seed: int) -> Plan | None:
    """The plan of a random project with a proven output; None if it has none."""
    warehouse = output_project(seed)
    plan = with_outputs(make_plan(warehouse), plan_outputs(warehouse, 5.0))
    return plan if plan.placed is not None and any(output.holds for output in plan.outputs) else None


def try_outage(seed: int, plan: Plan, journal_to: TextIO | None = None) -> OutageTrial:
    """Simulates the plan with an outage of one feed, until some periods after its recovery."""
    random = Random(f"outage:{seed}")
    warehouse = plan.warehouse
    feed = random.choice(sorted({step.feed for step in warehouse.steps.values() if step.feed is not None}))
    longest_us = max(each.next_file_us for each in warehouse.feeds.values())
    start = 3 * longest_us + random.randrange(longest_us)
    outage = (start, start + random.choice(OUTAGES_US) + random.randrange(longest_us))
    before, until = (_files_until(plan, feed, seed, (), at - 1) for at in outage)
    trial = OutageTrial(plan, feed, outage, until - before)
    recovery = StepRecovery(warehouse, _placed(plan))
    for output in plan.outputs:
        if output.holds and feed in recovery.feeds[output.name]:
            promised_us = recovery.promises_us({feed: trial.backlog})[output.name]
            if promised_us is not None:
                trial.promised_us[output.name] = promised_us
    end = outage[1] + max([*trial.promised_us.values(), outage[1] - outage[0]]) + 5 * longest_us
    _simulate(trial, seed, end, journal_to)
    return trial


def _simulate(trial: OutageTrial, seed: int, end: int, journal_to: TextIO | None) -> None:
    conditions = checked(trial.plan.warehouse, end, outages={trial.feed: [trial.outage]})
    header = header_of(trial.plan, end, seed, conditions)
    starts = _Starts(journal_to or StringIO(), header)
    run = SimulatedRun(trial.plan, seed, conditions, journal=starts)
    while run.driver.next_at <= end:
        run.driver.step()
        _look_at_recovery(run.kernel, trial)
    run.run(end)
    trial.outputs = tuple(result for result in run.results(end) if isinstance(result, OutputResult))
    trial.lost += starts.skipped
    for step in steps_of(run.kernel):
        feed = trial.plan.warehouse.steps[step.name].feed
        if feed is not None:
            begun, waiting = starts.files.get(step.name, 0), sum(len(each.files) for each in step.waiting)
            came = _files_until(trial.plan, feed, seed, conditions.outages.get(feed, ()), end)
            if begun + waiting != came:
                trial.lost.append(f"{step.name} has {begun} + {waiting} of {came} files")


class _Starts(Journal):
    """A journal that compares each range with the one before. No job fails here, so what starts is done."""

    def __init__(self, stream: TextIO, header: Record) -> None:
        super().__init__(stream, header)
        self._reached: dict[str, int] = {}
        self.files: dict[str, int] = {}
        self.skipped: list[str] = []

    def write(
        self, now: int, events: Sequence[Event], instructions: Sequence[Instruction], closing: bool = False
    ) -> None:
        super().write(now, events, instructions, closing)
        for instruction in instructions:
            assert isinstance(instruction, Start), "projects without tables and queries"
            job: StepJob = instruction.job  # type: ignore[assignment]
            for part in job.parts:
                if part.loaded_from != self._reached.get(part.name, 0):
                    self.skipped.append(f"{part.name} skipped to {part.loaded_from}")
                self._reached[part.name] = part.loaded_to
                self.files[part.name] = self.files.get(part.name, 0) + len(part.files)


def _look_at_recovery(kernel: Kernel, trial: OutageTrial) -> None:
    """Notes which outputs have no recovery before them any more."""
    if kernel.now < trial.outage[1] or trial.recovered_us.keys() == trial.promised_us.keys():
        return
    graph = StepGraph(trial.plan.warehouse)
    recovering = {step.name for step in steps_of(kernel) if step.recovering}
    for name in trial.promised_us.keys() - trial.recovered_us.keys():
        if graph.upstream[name].isdisjoint(recovering):
            trial.recovered_us[name] = kernel.now - trial.outage[1]


def _files_until(plan: Plan, feed: str, seed: int, outages: Sequence[Outage], end: int) -> int:
    """The number of a feed's files that come until then."""
    files = files_of(plan.warehouse.feeds[feed], seed, outages)
    came = 0
    while (coming := files.next()) is not None and coming[0] <= end:
        came += coming[1].timestamp > 0  # the others hold nothing
    return came


def _placed(plan: Plan) -> StepPlacement:
    assert plan.placed is not None
    return plan.placed
