"""Operators of a placement run by a kernel in simulated time: bursts come, and it is seen when each is done.

A burst of a stream is a number, one more than the last: the freshness of all that was computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from freshline.base.graph import topological_order
from freshline.definitions.sections.nodes import NodePolicy
from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.preemption import PreemptivePool
from freshline.kernel.steps.events import StepsCommitted
from freshline.kernel.steps.job import StepJob
from freshline.kernel.steps.orders import order_of
from freshline.kernel.steps.release import OnAdvance
from freshline.kernel.steps.task import StepTask, StepTerms
from freshline.kernel.tables.remote_table import RemoteAdvanced, RemoteTable
from freshline.planning.placement.plan import Operator, PlacementPlan
from freshline.simulation.driver import SimulatedDriver


class Burst(NamedTuple):
    """Something that comes in a stream."""

    at: int
    stream: str
    number: int
    came_at: int | None = None  # where it belongs to something that came before


class OperatorRun(NamedTuple):
    """An operator's work on a burst."""

    operator: str
    burst: int
    finish: int
    deadline: int


class StepSetting(NamedTuple):
    """What a placement says of a plan's operators, in microseconds."""

    nodes: Mapping[str, str]
    sub_deadlines_us: Mapping[str, int]
    costs_us: Mapping[str, int]  # on their nodes
    tasks: Sequence[Sequence[str]]
    limits_us: Mapping[str, int] = {}
    policy: NodePolicy = "edf"
    preemptive: bool = False


CostOf = Callable[[str, int], int]  # of an operator, for a burst


def step_kernel(plan: PlacementPlan, setting: StepSetting) -> Kernel:
    """A kernel with a pool a node, whose source streams are elsewhere."""
    kernel = Kernel()
    makers = {stream: operator.name for operator in plan.operators for stream in operator.outputs}
    readers = _readers(plan, makers)
    after = {step: following for task in setting.tasks for step, following in pairwise(task)}
    steps: dict[str, StepTask] = {}
    outputs = {makers[output.stream] for output in plan.outputs}
    for place, operator in enumerate(_in_order(plan, makers)):
        sources: dict[str, StepTask | RemoteTable] = {}
        for stream in operator.inputs:
            maker = makers.get(stream)
            if maker is not None:
                sources[maker] = steps[maker]
            else:
                sources[stream] = kernel.elsewhere.setdefault(stream, RemoteTable(stream))
        name = operator.name
        leaves = name in outputs or readers[name] != [after.get(name)]
        terms = StepTerms(
            setting.costs_us[name],
            setting.sub_deadlines_us[name],
            setting.limits_us.get(setting.nodes[name], 0),
            leaves,
        )
        step = steps[name] = StepTask(place, name, terms, list(sources.values()))
        step.rule = OnAdvance(step)
        for source in sources.values():
            source.dependents.append(step)
        kernel.add(step)
    for task in setting.tasks:
        for before, following in pairwise(task):
            steps[following].follow(steps[before])
    for number, node in enumerate(plan.nodes):
        order = order_of(setting.policy)
        order.preemptive = setting.preemptive
        kind = PreemptivePool if setting.preemptive else TrackPool
        pool = kind(node.name, 1, number, order, kernel.touched)
        kernel.pools.append(pool)
        for name, step in steps.items():
            if setting.nodes[name] == node.name:
                pool.join(step)
    kernel.begin(0)
    return kernel


class _Steps:
    """The kind of job that steps have, here with costs by burst."""

    def __init__(self, cost_of: CostOf) -> None:
        self._cost_of = cost_of
        self._ends: dict[StepJob, list[int]] = {}
        self.done: list[OperatorRun] = []

    def begins(self, kernel: Kernel) -> None: ...

    def cost_us(self, job: StepJob) -> int:
        return sum(
            self._cost_of(part.name, burst)
            for part in job.parts
            for burst in range(part.loaded_from + 1, part.loaded_to + 1)
        )

    def part_ends_us(self, job: StepJob, ran_us: int) -> int:
        return ran_us

    def paused(self, now: int, job: StepJob) -> None: ...

    def goes_on(self, now: int, job: StepJob) -> None: ...

    def ended(self, now: int, job: StepJob) -> Event:
        for part in job.parts:
            for burst in range(part.loaded_from + 1, part.loaded_to + 1):
                self.done.append(OperatorRun(part.name, burst, now, part.instance.deadline))
        return StepsCommitted(job)

    def crashed(self, now: int) -> None: ...

    def over(self, end: int, kernel: Kernel) -> None: ...


def run_steps(kernel: Kernel, bursts: Iterable[Burst], cost_of: CostOf) -> list[OperatorRun]:
    """What was done until nothing was left to do, in the order in which it ended."""
    kind = _Steps(cost_of)
    driver = SimulatedDriver(kernel, {StepJob: kind}, {})
    last = 0
    for burst in bursts:
        driver.tell(burst.at, RemoteAdvanced(burst.stream, burst.number, burst.came_at))
        last = max(last, burst.at)
    while driver.next_at <= last or any(pool.running for pool in kernel.pools) or kernel.touched:
        driver.step()
    return kind.done


def _readers(plan: PlacementPlan, makers: Mapping[str, str]) -> dict[str, list[str]]:
    readers: dict[str, list[str]] = {operator.name: [] for operator in plan.operators}
    for operator in plan.operators:
        for stream in operator.inputs:
            if stream in makers:
                readers[makers[stream]].append(operator.name)
    return readers


def _in_order(plan: PlacementPlan, makers: Mapping[str, str]) -> list[Operator]:
    """Operators after those that they read, as the plan has them otherwise."""
    reads = {
        operator.name: [makers[stream] for stream in operator.inputs if stream in makers]
        for operator in plan.operators
    }
    by_name = {operator.name: operator for operator in plan.operators}
    return [by_name[name] for name in topological_order(reads)]
