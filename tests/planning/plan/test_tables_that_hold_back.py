"""Queries with a table that is far behind another are warned of before they run."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.base.duration import HOUR, SECOND
from freshline.cli.main import app
from freshline.definitions.load import loads
from freshline.planning.plan.make import make_plan

TEXT = """\
name: site
pools:
  fast: {{tracks: 1}}
  slow: {{tracks: 1, policy: {policy}}}
  answers: {{tracks: 1, policy: lrm}}
feeds:
  clicks: {{period: {clicks}s, rows: 10}}
  prices: {{period: {prices}s, rows: 10}}
tables:
  clicks: {{feed: clicks, pool: fast, slices: {{by: k}}, cost: {{startup: 100ms}}}}
  prices: {{feed: prices, pool: slow, slices: {{by: k}}, cost: {{startup: 100ms}}}}
queries:
  alone: {{sql: "SELECT count(*) AS n FROM prices", window: 1s, stride: 5s, pool: answers}}
  both: {{sql: "SELECT count(*) AS n FROM clicks c JOIN prices p ON c.k = p.k", window: {window}s, stride: 5s, pool: answers}}
"""  # noqa: E501


def text(clicks: int = 1, prices: int = 3600, window: int = 60, policy: str = "edf") -> str:
    return TEXT.format(clicks=clicks, prices=prices, window=window, policy=policy)


@given(st.integers(1, 500), st.integers(1, 500), st.integers(1, 500), st.sampled_from(["edf", "fifo"]))
def test_a_query_is_warned_of_where_its_tables_differ_by_more_than_its_window(
    clicks: int, prices: int, window: int, policy: str
) -> None:
    """By their bounds, or by their periods where a policy has no bound."""
    plan = make_plan(loads(text(clicks, prices, window, policy)))
    bounds = [plan.tables_by_name[name].staleness_bound_us for name in ("clicks", "prices")]
    assert (None in bounds) == (policy == "fifo")
    ages = [clicks * SECOND, prices * SECOND] if bounds[1] is None or bounds[0] is None else bounds
    alone, both = plan.queries
    assert alone.held_back is None
    apart_us = abs(ages[0] - ages[1])
    if apart_us <= window * SECOND:
        assert both.held_back is None
        assert not [said for said in plan.advice if "answers about the time" in said]
        return
    assert both.held_back is not None
    assert both.held_back.name == ("clicks" if ages[0] > ages[1] else "prices")
    assert both.held_back.behind_us == apart_us
    (said,) = [said for said in plan.advice if "answers about the time" in said]
    assert said.startswith(f"Query both answers about the time that {both.held_back.name} has reached")


@pytest.mark.parametrize("policy", ["edf", "fifo"])
def test_the_plan_says_which_table_holds_a_query_back(tmp_path: Path, policy: str) -> None:
    (tmp_path / "freshline.yml").write_text(text(policy=policy))
    shown = CliRunner().invoke(app, ["plan", "-p", str(tmp_path)])
    assert "Query both answers about the time that prices has reached, up to " in shown.stdout
    record = json.loads(CliRunner().invoke(app, ["plan", "-p", str(tmp_path), "--json"]).stdout)
    alone, both = record["queries"]
    assert (alone["held_back_by"], alone["behind"]) == (None, None)
    assert both["held_back_by"] == "prices"
    assert both["behind"] > 0.9 * HOUR / SECOND
