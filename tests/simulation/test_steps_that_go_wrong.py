"""Steps of outputs that cost more than is planned, or fail."""

from fractions import Fraction

import pytest

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.printing.outputs import with_placement
from freshline.definitions.load import loads
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.planning.plan.plan import Plan
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.simulation.steps import OutputResult, StepResult

TEXT = """
name: alerts
nodes: {edge: {}, centre: {}}
feeds: {speeds: {period: 20s, node: edge, burst: 20}}
tables:
  readings: {feed: speeds, cost: {startup: 1s}}
  fast: {sources: [readings], node: edge, cost: {startup: 1s}}
  alerts: {sources: [fast], deadline: 12s, node: centre, cost: {startup: 1s}}
"""
READ_BY_A_TABLE = """
name: read
nodes: {here: {}}
pools: {updates: {tracks: 1}}
feeds: {speeds: {period: 10s, node: here, burst: 20}, others: {period: 10s, node: here, burst: 20}}
tables:
  readings: {feed: speeds, cost: {startup: 1s, loaded: true}, deadline: 5s}
  others: {feed: others, cost: {startup: 1s, loaded: true}, deadline: 5s}
  counts: {sources: [readings], period: 5s, cost: {startup: 100ms, loaded: true}}
"""
END = 400 * SECOND


@pytest.fixture(scope="module")
def plan() -> Plan:
    warehouse = loads(TEXT)
    return with_outputs(make_plan(warehouse), plan_outputs(warehouse))


def seen(result: SimulationResult) -> tuple[OutputResult, dict[str, StepResult]]:
    (output,) = result.outputs
    return output, {step.name: step for step in result.steps}


def test_a_slow_step_is_late_before_its_output_is(plan: Plan) -> None:
    usual, _ = seen(simulate(plan, END, 1))
    assert (usual.misses, usual.latency_max_us) == (0, pytest.approx(3 * SECOND, rel=0.02))
    slow, steps = seen(simulate(plan, END, 1, slow={"fast": Fraction(8)}))
    assert (slow.misses, slow.latency_max_us) == (0, pytest.approx(10 * SECOND, rel=0.02))
    assert steps["fast"].misses > 0
    slower, _ = seen(simulate(plan, END, 1, slow={"fast": Fraction(11)}))
    assert slower.misses == slower.rows > 0


def test_a_step_that_fails_is_done_again_and_nothing_is_lost(plan: Plan) -> None:
    usual, _ = seen(simulate(plan, END, 1))
    output, steps = seen(simulate(plan, END, 1, failures={"fast": Fraction(1, 3)}))
    assert output.rows == usual.rows
    assert steps["fast"].failed > 0 == steps["alerts"].failed
    assert output.latency_max_us > usual.latency_max_us  # type: ignore[operator]


def test_only_what_there_is_can_be_slow_or_fail(plan: Plan) -> None:
    with pytest.raises(InputError, match="which is to be slow, does not exist"):
        simulate(plan, END, 1, slow={"fats": Fraction(2)})
    with pytest.raises(InputError, match="failing table `fats` does not exist"):
        simulate(plan, END, 1, failures={"fats": Fraction(1, 2)})


@pytest.mark.parametrize(
    "faults",
    [
        {"outages": {"speeds": [(50 * SECOND, 200 * SECOND)]}},
        {"outages": {"others": [(50 * SECOND, 200 * SECOND)]}},  # its backlog delays the other step
        {"crashes": [(50 * SECOND, 200 * SECOND)]},
    ],
)
def test_a_table_that_reads_a_step_has_its_bound_again_once_no_step_has_work(faults: dict) -> None:
    plan = with_placement(make_plan(loads(READ_BY_A_TABLE)), {})
    (table,) = simulate(plan, END, 1, **faults).tables
    bound_us = table.plan.staleness_bound_us
    assert bound_us is not None
    assert not table.exceeded_bound
    assert table.asserted_max_us is not None
    if "speeds" in faults.get("outages", {}) or "crashes" in faults:
        assert table.staleness_max_us > bound_us
    (usual,) = simulate(plan, END, 1).tables
    assert usual.asserted_max_us == usual.staleness_max_us <= bound_us
