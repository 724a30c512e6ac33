"""What `freshline plan` says of recovery, and of bounds that hold in expectation only."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshline.cli.main import app

FEEDS = """\
feeds:
  a: {period: 10s, phase: 10s, jitter: 5s, arrival: files}
  live: {period: 10s, arrival: continuous}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "freshline.yml"


def write(file: Path, pools: str, **tables: str) -> None:
    rows = "".join(f"  {name}: {{{rest}}}\n" for name, rest in tables.items())
    file.write_text(f"name: small\npools: {{{pools}}}\n{FEEDS}tables:\n{rows}", encoding="utf-8")


def plan(file: Path) -> list[str]:
    result = CliRunner().invoke(app, ["plan", "-p", str(file)])
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


def record(file: Path) -> dict:
    return json.loads(CliRunner().invoke(app, ["plan", "-p", str(file), "--json"]).stdout)


SUMS = 'sql: "SELECT ts, count(*) AS n FROM a GROUP BY ts", period: 10s, cost: {startup: 1s}'


def test_the_recovery_time_is_a_line_over_the_length_of_the_outage(file):
    write(file, "updates: {tracks: 1, policy: aus}", a="feed: a, cost: {startup: 2s}")
    # Alone on its track: p^[r] = e = 2 and Θ = 10, so x = (10·10 + (λ + 5 + 10)·2) / 8.
    (table,) = record(file)["tables"]
    assert table["recovery_period"] == 2.0
    assert table["recovery_time"] == {"base": 16.25, "per_second": 0.25}
    assert table["expected"] is False
    lines = plan(file)
    assert "table pool period cost ≤ response ≤ staleness ≤ target recovery ≤" in lines
    assert "a updates 10s 2s 10s 35s - 16.3s + 0.25 λ holds" in lines
    assert any("outage of its feed of the length λ" in line for line in lines)


def test_only_base_tables_on_files_have_a_recovery_time_before_an_outage(file):
    tables = {"a": "feed: a, cost: {startup: 2s}", "live": "feed: live, cost: {startup: 1s}", "sums": SUMS}
    write(file, "updates: {tracks: 1, policy: aus-slack}", **tables)
    rows = {table["name"]: table for table in record(file)["tables"]}
    assert [name for name, table in rows.items() if table["recovery_time"]] == ["a"]
    assert [name for name, table in rows.items() if table["recovery_period"]] == ["a", "sums"]


@pytest.mark.parametrize("cost", ["10s", "11s"])
def test_nothing_is_said_where_nothing_is_spare_or_bounded(file, cost):
    write(file, "updates: {tracks: 1, policy: aus}", a=f"feed: a, cost: {{startup: {cost}}}")
    assert record(file)["tables"][0]["recovery_time"] is None
    assert not any("+" in line for line in plan(file))


@pytest.mark.parametrize("policy", ["aus", "aus-slack"])
def test_a_pool_without_a_bound_is_said_to_behave_as_edf(file, policy):
    pools = f"updates: {{tracks: 1, policy: {policy}}}, idle: {{tracks: 1, policy: {policy}}}"
    write(file, pools, a="feed: a, cost: {startup: 10001ms}, pool: updates")
    pools = [(pool["policy"], pool["behaves_as"]) for pool in record(file)["pools"]]
    assert pools == [(policy, "edf"), (policy, policy)]
    lines = plan(file)
    assert "updates: no bound: behaves as edf" in lines
    assert not any("idle:" in line for line in lines)
    write(file, f"updates: {{tracks: 1, policy: {policy}}}", a="feed: a, cost: {startup: 10s}")
    assert [pool["behaves_as"] for pool in record(file)["pools"]] == [policy]
    assert not any("behaves as" in line for line in plan(file))


def test_tables_without_a_bound_in_a_pool_whose_others_have_bounds_are_named(file):
    tables = {"a": "feed: a, pool: other, cost: {startup: 11s}", "sums": f"{SUMS}, pool: updates"}
    tables["live"] = "feed: live, pool: updates, cost: {startup: 1s}"
    write(file, "updates: {tracks: 1, policy: aus}, other: {tracks: 1}", **tables)
    assert [pool["behaves_as"] for pool in record(file)["pools"]] == ["aus", "edf"]
    assert "updates: no bound for sums: served as with edf" in plan(file)


def test_an_overloaded_pool_without_clusters_is_said_to_behave_as_edf(file):
    write(file, "updates: {tracks: 1, policy: clustered-edf}", a="feed: a, cost: {startup: 11s}")
    assert [pool["behaves_as"] for pool in record(file)["pools"]] == ["edf"]
    assert "updates: no bound: behaves as edf" in plan(file)


@pytest.mark.parametrize("policy", ["fifo", "rm", "prp", "edf", "edf-strict"])
def test_policies_that_ask_for_no_bound_behave_as_themselves(file, policy):
    write(file, f"updates: {{tracks: 1, policy: {policy}}}", a="feed: a, cost: {startup: 11s}")
    assert [pool["behaves_as"] for pool in record(file)["pools"]] == [policy]


def test_other_policies_say_nothing_of_recovery(file):
    write(file, "updates: {tracks: 1}", a="feed: a, cost: {startup: 2s}")
    (table,) = record(file)["tables"]
    assert (table["recovery_period"], table["recovery_time"], table["expected"]) == (None, None, False)
    assert not any("recovery" in line or "xpected" in line for line in plan(file))


def test_with_average_provisioning_bounds_and_verdicts_are_expected(file):
    cost = "cost: {startup: 5s, variability: 0.8}"
    write(
        file,
        "updates: {tracks: 1, policy: aus, provisioning: average}, marts: {tracks: 1}",
        a=f"feed: a, pool: updates, target_lag: 2m, {cost}",
        b=f"feed: a, pool: updates, {cost}",
        live="feed: live, pool: marts, cost: {startup: 1s}",
        sums=f"{SUMS}, pool: marts",
    )
    shown = record(file)
    assert [pool["provisioning"] for pool in shown["pools"]] == ["average", "worst"]
    # sums counts with the bound of a, though its own pool is provisioned for the worst.
    expected = [(table["name"], table["expected"]) for table in shown["tables"]]
    assert expected == [("a", True), ("b", True), ("live", False), ("sums", True)]
    lines = plan(file)
    assert "updates aus 1 1.800 1 expected (average costs)" in lines
    assert [line.split()[-1] for line in lines if line.startswith(("a ", "b ", "live ", "sums "))] == [
        "expected",
        "expected",
        "holds",
        "expected",
    ]
    assert "Expected: the one target is expected to be kept." in lines
