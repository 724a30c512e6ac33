"""Runs operators of a placement by a kernel in simulated time, with bursts as input.

A burst of a stream is a number, one more than the last: the freshness of all that is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from freshline.base.graph import topological_order
from freshline.definitions.sections.nodes import NodePolicy
from freshline.kernel.assembly.step_tasks import StepSpec, add_node, leaving_steps, make_steps
from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.steps.events import StepsCommitted
from freshline.kernel.steps.job import StepJob
from freshline.kernel.steps.task import StepTerms
from freshline.kernel.tables.remote_table import RemoteAdvanced
from freshline.planning.placement.plan import PlacementPlan
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.kind import SimulatedKind


class Burst(NamedTuple):
    """Input that arrives in a stream."""

    at: int
    stream: str
    number: int
    came_at: int | None = None  # if it belongs to an earlier arrival


class OperatorRun(NamedTuple):
    """An operator's work on a burst."""

    operator: str
    burst: int
    finish: int
    deadline: int


class StepSetting(NamedTuple):
    """A placement of a plan's operators, in microseconds."""

    nodes: Mapping[str, str]
    sub_deadlines_us: Mapping[str, int]
    costs_us: Mapping[str, int]  # on their nodes
    tasks: Sequence[Sequence[str]]
    limits_us: Mapping[str, int] = {}
    policy: NodePolicy = "edf"
    preemptive: bool = False


CostOf = Callable[[str, int], int]  # of an operator, for a burst


def step_kernel(plan: PlacementPlan, setting: StepSetting) -> Kernel:
    """A kernel with a pool per node; source streams are remote tables."""
    kernel = Kernel()
    makers = {stream: operator.name for operator in plan.operators for stream in operator.outputs}
    reads = {
        operator.name: [makers[stream] for stream in operator.inputs if stream in makers]
        for operator in plan.operators
    }
    leaving = leaving_steps(reads, [makers[output.stream] for output in plan.outputs], setting.tasks)
    inputs = {operator.name: operator.inputs for operator in plan.operators}
    specs = []
    for place, name in enumerate(topological_order(reads)):
        limit_us = setting.limits_us.get(setting.nodes[name], 0)
        costs = setting.costs_us[name], setting.sub_deadlines_us[name]
        sources = list(dict.fromkeys(makers.get(stream, stream) for stream in inputs[name]))
        specs.append(StepSpec(place, name, StepTerms(*costs, limit_us, name in leaving), sources))
    for step in make_steps(kernel, specs, setting.tasks).values():
        kernel.add(step)
    for number, node in enumerate(plan.nodes):
        own = [spec.name for spec in specs if setting.nodes[spec.name] == node.name]
        add_node(kernel, node.name, setting.policy, number, own, setting.preemptive)
    kernel.begin(0)
    return kernel


class _Steps(SimulatedKind[StepJob]):
    """The simulated jobs of steps, with costs by burst."""

    def __init__(self, cost_of: CostOf) -> None:
        self._cost_of = cost_of
        self.done: list[OperatorRun] = []

    def cost_us(self, job: StepJob) -> int:
        return sum(
            self._cost_of(part.name, burst)
            for part in job.parts
            for burst in range(part.loaded_from + 1, part.loaded_to + 1)
        )

    def ended(self, now: int, job: StepJob) -> Event:
        for part in job.parts:
            for burst in range(part.loaded_from + 1, part.loaded_to + 1):
                self.done.append(OperatorRun(part.name, burst, now, part.instance.deadline))
        return StepsCommitted(job)


def run_steps(kernel: Kernel, bursts: Iterable[Burst], cost_of: CostOf) -> list[OperatorRun]:
    """All that was done until nothing was left to do, in the order of ends."""
    kind = _Steps(cost_of)
    driver = SimulatedDriver(kernel, {StepJob: kind}, {})
    last = 0
    for burst in bursts:
        driver.tell(burst.at, RemoteAdvanced(burst.stream, burst.number, burst.came_at))
        last = max(last, burst.at)
    while driver.next_at <= last or any(pool.running for pool in kernel.pools) or kernel.touched:
        driver.step()
    return kind.done
