"""Tables whose costs are not what the plan assumes."""

import io
import json
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.planning.plan.make import make_plan
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.simulation.updates import SlowedCosts
from freshline.testing.builder import Builder
from freshline.testing.script import FixedCosts
from freshline_lab.runs.warehouses import random_warehouse


def costs(result: SimulationResult) -> list[int]:
    assert result.records is not None
    return [bar.end - bar.start for bar in islice(result.records.bars(), len(result.records))]


def test_costs_are_multiplied_rounded_down_and_at_least_a_microsecond():
    slowed = SlowedCosts(FixedCosts([7, 10, 1, 3]), Fraction(3, 2))
    assert [slowed.draw_us(0) for _ in range(4)] == [10, 15, 1, 4]
    quicker = SlowedCosts(FixedCosts([7, 1, 2]), Fraction("0.5"))
    assert [quicker.draw_us(0) for _ in range(3)] == [3, 1, 1]


def test_the_same_draws_are_multiplied_and_the_plan_stays():
    builder = Builder(tracks=2).continuous("a", period=10, cost=4, variability=0.5)
    plan = make_plan(builder.continuous("b", period=10, cost=1).build())
    usual = simulate(plan, 95 * SECOND, 1, keep_records=True)
    slow = simulate(plan, 95 * SECOND, 1, slow={"a": Fraction(3, 2)}, keep_records=True)
    assert sorted(costs(slow)) == sorted(cost if cost == SECOND else cost * 3 // 2 for cost in costs(usual))
    assert [table.plan for table in slow.tables] == [table.plan for table in usual.tables]
    assert [table.plan.cost_us for table in slow.tables] == [6 * SECOND, SECOND]


def test_a_slow_table_falls_behind_and_makes_others_late():
    # a takes 8 of every 10 seconds instead of 4, and b needs 4: together they are too much for one track.
    builder = Builder().continuous("a", period=10, cost=4).continuous("b", period=10, cost=4)
    plan = make_plan(builder.build())
    assert all(table.staleness_bound_us is not None for table in plan.tables)
    result = simulate(plan, 1_000 * SECOND, slow={"a": Fraction(2)})
    assert all(table.staleness_max_us > table.plan.staleness_bound_us for table in result.tables)
    assert [table.asserted_max_us for table in result.tables] == [None, None]
    assert [table.state for table in result.tables] == ["LATE", "LATE"]
    assert [table.recovered_at_us for table in result.tables] == [None, None]


@sampled(60)
@given(st.integers(0, 2**32))
def test_tables_that_are_quicker_than_assumed_keep_every_bound(seed):
    plan = make_plan(random_warehouse(seed))
    quicker = {table.name: Fraction(1 + index % 4, 4) for index, table in enumerate(plan.tables)}
    result = simulate(plan, 100 * SECOND, seed, slow=quicker)
    assert all(table.asserted_max_us == table.staleness_max_us for table in result.tables)
    assert not [table.plan.name for table in result.tables if table.exceeded_bound]


def test_the_factor_is_in_the_log():
    stream = io.StringIO()
    plan = make_plan(Builder().continuous("a", period=10, cost=4).build())
    simulate(plan, 8 * SECOND, slow={"a": Fraction(3, 2)}, journal_to=stream)
    header, started, finished = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert header["slow"] == {"a": "3/2"}
    assert (started["now"], finished["now"]) == (0, 6 * SECOND)


@pytest.mark.parametrize(
    ("slow", "words"),
    [
        (
            {"b": Fraction(2)},
            "`b`, which is to be slow, does not exist. Define it under `tables`",
        ),
        ({"a": Fraction(0)}, "`a` is slow by the factor 0. Give a factor above zero."),
        ({"a": Fraction(-1, 2)}, "`a` is slow by the factor -1/2."),
    ],
)
def test_a_factor_that_cannot_be_is_refused(slow, words):
    plan = make_plan(Builder().continuous("a", period=10, cost=4).build())
    with pytest.raises(InputError) as error:
        simulate(plan, 100 * SECOND, slow=slow)
    assert words in str(error.value)
