"""Costs while all tracks are busy: how tracks share the cores of their Spark."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.definitions.sections.cost import Cost
from freshline.definitions.serial import from_record, to_record
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.bounds import longest_update_us, worst_case_us
from freshline.planning.costs.cores import spark_cores
from freshline.planning.costs.fit import PastRun
from freshline.planning.costs.learned import learned_costs
from freshline.planning.plan.counted_costs import count_cores, slowdowns
from freshline.planning.plan.make import make_plan
from freshline.simulation.simulate import simulate

SECOND = 1_000_000


def warehouse(cores: int | None, tracks: int, costs: list[str], period: str = "10s") -> Warehouse:
    lines = [f"cores: {cores}"] if cores else []
    lines += ["name: w", f"pools: {{p: {{tracks: {tracks}}}}}", "feeds:"]
    lines += [f"  f{number}: {{period: {period}}}" for number in range(len(costs))]
    lines.append("tables:")
    lines += [f"  t{number}: {{feed: f{number}, cost: {cost}}}" for number, cost in enumerate(costs)]
    return loads("\n".join(lines))


def cost_us(found: Warehouse, name: str) -> int:
    table = found.tables[name]
    assert table.cost is not None
    assert table.feed is not None
    return worst_case_us(table.cost, longest_update_us(table, found.feeds[table.feed]))


def test_a_cost_is_multiplied_by_the_share_of_the_cores() -> None:
    found = count_cores(warehouse(2, 4, ["{startup: 1s, tasks: 1, task: 0s}", "{startup: 1s, task: 0s}"]))
    assert cost_us(found, "t0") == 2 * SECOND  # 4 tracks · 1 task / 2 cores
    assert cost_us(found, "t1") == 4 * SECOND  # nothing says how many tasks: it may use both cores


def test_after_each_stage_a_job_waits_for_the_longest_task_of_another() -> None:
    costs = ["{startup: 1s, tasks: 1, stages: 3, task: 900ms}", "{startup: 1s, tasks: 1, task: 200ms}"]
    found = count_cores(warehouse(1, 2, costs))
    assert cost_us(found, "t0") == 2 * SECOND + 3 * SECOND // 5
    assert cost_us(found, "t1") == 2 * SECOND + 9 * SECOND // 10


def test_with_a_core_for_every_task_nothing_changes() -> None:
    plain = warehouse(4, 2, ["{startup: 1s, tasks: 2}", "{startup: 2s, rate: 0.1, tasks: 1}"])
    found = count_cores(plain)
    assert [cost_us(found, name) for name in found.tables] == [cost_us(plain, name) for name in plain.tables]


def test_many_tracks_on_one_core_do_not_hold() -> None:
    costs = ["{startup: 1s, tasks: 1, task: 100ms}"] * 20
    without = make_plan(warehouse(None, 64, costs))
    assert without.holds
    assert not make_plan(warehouse(1, 64, costs)).holds


def test_the_least_tracks_are_those_at_these_cores() -> None:
    # Ten seconds of work in ten seconds: on one core one track has all of it, and two tracks gain nothing.
    costs = ["{startup: 1s, tasks: 1, task: 0s}"] * 9
    plan = make_plan(warehouse(1, 3, costs))
    assert plan.pools[0].tracks_least == 1
    assert make_plan(warehouse(1, 1, costs)).holds


def test_costs_of_busy_tracks_count_as_they_are() -> None:
    plain = warehouse(1, 8, ["{startup: 1s, loaded: true}", "{startup: 1s, loaded: true}"])
    assert count_cores(plain) == plain
    assert [each.factor for each in slowdowns(plain)] == [1]


def test_a_simulation_counts_the_same() -> None:
    plan = make_plan(warehouse(1, 2, ["{startup: 1s, tasks: 1, task: 0s}"] * 2))
    result = simulate(plan, 600 * SECOND)
    assert {table.plan.cost_us for table in result.tables} == {2 * SECOND}
    assert result.pools[0].busy == pytest.approx(0.4, rel=0.05)


def test_sparks_on_one_machine_share_its_cores() -> None:
    text = """
name: w
{cores}
nodes: {{edge: {{master: "local[2]"}}, centre: {{master: "local[2]"}}}}
feeds: {{f: {{period: 10s, node: edge, burst: 10}}}}
tables:
  a: {{feed: f, cost: {{startup: 1s, tasks: 1}}}}
  b: {{sources: [a], cost: {{startup: 1s}}, deadline: 60s}}
"""
    alone = count_cores(loads(text.format(cores="")))
    shared = count_cores(loads(text.format(cores="cores: 2")))
    for name in ("a", "b"):
        before, after = alone.steps[name].cost, shared.steps[name].cost
        assert before is not None
        assert after is not None
        assert before.startup_us == SECOND  # one track for steps on each
        assert after.startup_us == 2 * SECOND


class _Runs:
    def __init__(self, runs: list[PastRun]) -> None:
        self._runs = runs

    def runs(self, table: str) -> list[PastRun]:
        return self._runs


@pytest.mark.parametrize(("busy", "tasks", "factor"), [(1, 1, 2), (4, 1, 1), (2, 2, 2), (1, 2, 4), (0, 0, 4)])
def test_learned_costs_remember_how_many_tracks_were_busy(busy: int, tasks: int, factor: int) -> None:
    declared = warehouse(2, 4, ["{startup: 1s}"])
    unknown = replace(declared, tables={"t0": replace(declared.tables["t0"], cost=None)})
    runs = [PastRun(number, SECOND, 10, 10 * SECOND, 1, busy, tasks) for number in range(30)]
    alone = learned_costs(replace(unknown, cores=None), _Runs(runs)).warehouse.tables["t0"].cost
    found = learned_costs(unknown, _Runs(runs)).warehouse.tables["t0"].cost
    assert alone is not None
    assert found is not None
    assert found.loaded
    whole = worst_case_us(found, 10 * SECOND)
    assert whole == pytest.approx(factor * worst_case_us(alone, 10 * SECOND), rel=1e-3)


_COSTS = st.builds(
    Cost,
    st.integers(1, 3 * SECOND),
    st.sampled_from([Fraction(0), Fraction(1, 7)]),
    st.sampled_from([Fraction(0), Fraction(1, 3)]),
    st.just(Fraction(0)),
    st.none() | st.integers(1, 6),
    st.integers(1, 4),
    st.none() | st.integers(1, SECOND),
    st.booleans(),
)


@given(st.lists(_COSTS, min_size=1, max_size=6), st.integers(1, 8), st.integers(1, 8))
def test_counting_is_monotone_in_tracks_and_cores_and_done_once(
    costs: list[Cost], cores: int, tracks: int
) -> None:
    plain = warehouse(cores, tracks, ["{startup: 1s}"] * len(costs))
    tables = {
        table.name: replace(table, cost=cost)
        for table, cost in zip(plain.tables.values(), costs, strict=True)
    }
    plain = replace(plain, tables=tables)
    once = count_cores(plain)
    assert count_cores(once) == once
    assert from_record(to_record(once)) == replace(
        from_record(to_record(plain)), tables=_without_places(once)
    )
    # Tasks that are not declared are as many as the cores: then more cores need not help.
    more_cores = count_cores(replace(plain, cores=cores + 1))
    pools = {"p": replace(plain.pools["p"], tracks=tracks + 1)}
    more_tracks = count_cores(replace(plain, pools=pools))
    for name, cost in zip(tables, costs, strict=True):
        assert cost_us(once, name) >= cost_us(plain, name)
        assert cost_us(more_tracks, name) >= cost_us(once, name)
        if all(each.tasks is not None for each in costs):
            assert cost_us(more_cores, name) <= cost_us(once, name)
        if cost.loaded:
            assert cost_us(once, name) == cost_us(plain, name)


def _without_places(found: Warehouse) -> dict[str, object]:
    return dict(from_record(to_record(found)).tables)


def test_a_local_master_says_its_cores() -> None:
    found = loads(
        'name: w\nnodes: {a: {}, b: {master: "local[3]"}, c: {master: "spark://h:1", cores: 16}, '
        'd: {master: "spark://h:2"}}\nfeeds: {f: {period: 10s, node: a, burst: 1}}\n'
        "tables: {t: {feed: f, cost: {startup: 1s}, deadline: 30s}}"
    )
    assert {name: each.cores for name, each in spark_cores(found).items()} == {"a": 1, "b": 3, "c": 16}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cores: 0\nname: w\npools: {p: {tracks: 1}}", "0 is not a whole number"),
        ("cores: many\nname: w\npools: {p: {tracks: 1}}", "is not a whole number"),
        ("name: w\nnodes: {a: {cores: 0}}", "0 is not a whole number"),
        ('name: w\nnodes: {a: {master: "local[2]", cores: 4}}', "it has no effect with the master"),
    ],
)
def test_wrong_cores_are_errors_with_their_place(text: str, said: str) -> None:
    rest = "\nfeeds: {f: {period: 10s}}\ntables: {t: {feed: f, cost: {startup: 1s}}}"
    with pytest.raises(InputError, match=said):
        loads(text + rest)
