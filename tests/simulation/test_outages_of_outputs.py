"""After an outage the backlog of a feed delays no output of other feeds, and is done as promised."""

from io import StringIO
from json import loads as load_json

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from freshline.base.duration import MINUTE, SECOND
from freshline.definitions.load import loads
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.step_recovery import StepRecovery
from freshline.simulation.simulate import simulate
from freshline_lab.campaigns.placement.outages import outage_plan, try_outage

# The feeds share a node; a backlog of one would hold the other up for long.
BESIDE = """
name: beside
nodes: {here: {}}
feeds:
  speeds: {period: 5s, burst: 100}
  alarms: {period: 5s, phase: 1s, burst: 100}
tables:
  limits: {feed: speeds, cost: {startup: 300ms, per_row: 2ms}}
  average: {sources: [limits], cost: {startup: 500ms, per_row: 2ms}, deadline: 6s}
  alerts: {feed: alarms, cost: {startup: 200ms}, deadline: 2s}
"""
STUCK = """
name: stuck
nodes: {here: {}}
feeds: {speeds: {period: 5s, jitter: 3s, burst: 100}}
tables: {limits: {feed: speeds, cost: {startup: 2s}, deadline: 6s}}
"""


def planned(text: str) -> Plan:
    warehouse = loads(text)
    return with_outputs(make_plan(warehouse), plan_outputs(warehouse))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_outputs_of_other_feeds_are_in_time_and_the_late_ones_recover_as_promised(seed: int) -> None:
    plan = outage_plan(seed)
    assume(plan is not None)
    assert plan is not None
    journal = StringIO()
    trial = try_outage(seed, plan, journal)
    assert not trial.broken, (seed, trial.broken)
    header, *records = map(load_json, journal.getvalue().splitlines())
    calls, difference = replay(kernel_of(header), records, header)
    assert (calls, difference) == (len(records), None)


def test_a_healthy_output_is_in_time_beside_outages_of_5_and_20_minutes() -> None:
    plan = planned(BESIDE)
    assert all(output.holds for output in plan.outputs)
    usual = {output.name: output.rows for output in simulate(plan, 45 * MINUTE, 1).outputs}
    for minutes in (5, 20):
        outage = (60 * SECOND, (1 + minutes) * MINUTE)
        result = simulate(plan, 45 * MINUTE, 1, outages={"speeds": [outage]})
        late, healthy = result.outputs
        assert (late.name, healthy.name) == ("average", "alerts")
        assert healthy.misses == 0
        assert not healthy.broke_proof
        assert late.misses > 0
        assert {output.name: output.rows for output in result.outputs} == usual


def test_nothing_is_promised_where_a_node_has_no_time_left() -> None:
    warehouse = loads(STUCK)
    placed = plan_outputs(warehouse).placed
    assert placed is not None
    assert StepRecovery(warehouse, placed).promises_us({"speeds": 3}) == {"limits": None}
    plan = planned(BESIDE)
    assert plan.placed is not None
    recovery = StepRecovery(plan.warehouse, plan.placed)
    # (60 files x 1.2 s + 1.4 s) / (1 - 1.4/5)
    assert recovery.promises_us({"speeds": 60}) == {"limits": 101_944_445, "average": 101_944_445}
