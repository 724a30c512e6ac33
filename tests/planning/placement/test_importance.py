"""Outputs of which not all can be in time: the important ones are, the others are stretched by name."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.base.duration import SECOND
from freshline.cli.main import app
from freshline.definitions.load import loads
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import OutputsPlan, plan_outputs, with_outputs
from freshline.simulation.simulate import simulate

TEXT = """
name: alerts
nodes: {here: {}}
feeds: {speeds: {period: 60s, burst: 20}, plates: {period: 60s, burst: 20}}
tables:
  readings: {feed: speeds, cost: {startup: 1s}}
  fast: {sources: [readings], deadline: 30s, cost: {startup: 1s}}
  known: {feed: plates, cost: {startup: 1s}}
  found: {sources: [known], deadline: DEADLINE, cost: {startup: 1s}WEIGHT}
"""


def planned(deadline: str, weight: str = "") -> OutputsPlan:
    return plan_outputs(loads(TEXT.replace("DEADLINE", deadline).replace("WEIGHT", weight)))


def test_a_hopeless_output_takes_no_other_with_it() -> None:
    for deadline in ("500ms", "2500ms"):  # below its own cost, and below what blocking leaves
        plan = planned(deadline, ", weight: 100")
        fast, hopeless = plan.outputs
        assert (fast.holds, hopeless.holds) == (True, False)
        assert sum(fast.sub_deadlines_us.values()) <= 30 * SECOND
        assert hopeless.reason is not None
        assert "no placement is in time for it and for fast: its deadline is stretched" in hopeless.reason
        assert plan.placed is not None
        assert [*plan.placed.stretched] == ["found"]
        assert plan.placed.shortcomings[0].startswith("deadlines are stretched")
        assert "(found)" in plan.placed.shortcomings[0]


def test_an_output_that_is_late_before_it_is_computed_takes_no_other_with_it() -> None:
    text = TEXT.replace("plates: {", "plates: {age: 20s, ").replace("WEIGHT", "").replace("DEADLINE", "10s")
    fast, hopeless = plan_outputs(loads(text)).outputs
    assert (fast.holds, hopeless.holds) == (True, False)
    assert hopeless.reason is not None
    assert "20s old before anything is computed" in hopeless.reason


def test_of_outputs_that_fit_only_alone_the_important_one_is_kept() -> None:
    text = TEXT.replace("deadline: 30s", "deadline: 4s").replace("DEADLINE", "4s")
    alone = text[: text.index("  known")].replace("plates: {period: 60s, burst: 20}", "")
    assert plan_outputs(loads(alone)).outputs[0].holds
    for weight, kept in ((", weight: 2", "found"), (", weight: 0.5", "fast"), ("", "fast")):
        found = plan_outputs(loads(text.replace("WEIGHT", weight)))
        assert [output.name for output in found.outputs if output.holds] == [kept]


@settings(max_examples=15, deadline=None)
@given(st.integers(200, 12_000), st.integers(200, 12_000), st.sampled_from(["", ", weight: 3"]))
def test_whatever_is_kept_is_in_time_and_has_no_sub_deadline_beyond_its_own(
    one_ms: int, other_ms: int, weight: str
) -> None:
    text = TEXT.replace("30s", f"{one_ms}ms").replace("DEADLINE", f"{other_ms}ms").replace("WEIGHT", weight)
    warehouse = loads(text)
    plan = with_outputs(make_plan(warehouse), plan_outputs(warehouse))
    for output in plan.outputs:
        if output.holds:
            assert max(output.sub_deadlines_us.values()) <= output.deadline_us
    assert not any(output.broke_proof for output in simulate(plan, 1200 * SECOND).outputs)


# The chain to `deep` may take 17 s over three nodes, while files come 7 s apart. `near` shares its last node.
SPOILED = """
name: spoiled
nodes: {a: {}, b: {}, c: {}}
feeds: {f: {period: 7s, burst: 10, node: b}}
tables:
  first: {feed: f, node: b, cost: {startup: 100ms}}
  second: {sources: [first], node: c, cost: {startup: SECOND}}
  third: {sources: [second], node: b, cost: {startup: 400ms}}
  deep: {sources: [third], node: a, cost: {startup: DEEP}, deadline: 17sWEIGHT}
  near: {sources: [first], node: [a, b], cost: {startup: 200ms}, deadline: 7s}
"""


def spoiled(second: str, deep: str, weight: str = "") -> OutputsPlan:
    text = SPOILED.replace("SECOND", second).replace("DEEP", deep).replace("WEIGHT", weight)
    return plan_outputs(loads(text))


def test_a_chain_of_long_sub_deadlines_spoils_no_output_on_its_nodes() -> None:
    assert [output.holds for output in spoiled("400ms", "200ms").outputs] == [True, True]


def test_an_output_whose_bursts_meet_in_any_case_gives_way_even_if_it_is_important() -> None:
    for weight in ("", ", weight: 9"):
        deep, near = spoiled("400ms", "7s", weight).outputs
        assert (deep.holds, near.holds) == (False, True)
        assert deep.reason is not None
        assert "for deep when the next comes" in deep.reason
        assert near.node == "b"  # not where it would have to wait for `deep`


def test_the_command_says_which_output_is_stretched(tmp_path: Path) -> None:
    (tmp_path / "freshline.yml").write_text(TEXT.replace("DEADLINE", "500ms").replace("WEIGHT", ""))
    ran = CliRunner().invoke(app, ["plan", "-p", str(tmp_path), "--json"])
    assert ran.exit_code == 1
    assert [output["holds"] for output in json.loads(ran.stdout)["outputs"]] == [True, False]
