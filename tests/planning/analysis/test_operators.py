"""What a continuous query costs by its operators (paper 000, Table 1 and (3)–(7))."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.planning.analysis.operators import operator_cost
from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream
from freshline_lab.experiments.queries.table_2 import table_2

HALF = Fraction(1, 2)
S1, S2, S3 = Stream("s1"), Stream("s2"), Stream("s3")
TWO = Join(HALF, S1, S2)


@pytest.mark.parametrize(
    ("tree", "cost_us", "selectivity"),
    [
        (Select(HALF, S1), 4_000, HALF),  # 1 + 2.5 + 0.5
        (Project(S1), 4_000, Fraction(1)),  # 1 + 2 + 1
        (Project(Select(HALF, S1)), 6_000, HALF),
        (TWO, 14_000, HALF),  # 2·(1 + 3 + 2.5 + 0.5)
        (Join(HALF, TWO, S3), 28_000, Fraction(1, 3)),
        (S1, 1, Fraction(1)),
    ],
)
def test_the_costs_of_operators_add_up(tree: Operator, cost_us: int, selectivity: Fraction) -> None:
    cost = operator_cost(tree, {"s1": 1_000, "s2": 1_000, "s3": 1_000})
    assert (cost.cost_us, cost.fixed_us, cost.selectivity) == (cost_us, 0, selectivity)


def test_an_aggregate_writes_once_and_every_tuple_counts_in_it() -> None:
    cost = operator_cost(Aggregate(S1), {"s1": 1_000})
    assert cost == (4_001, 1, Fraction(1), Fraction(1_000))


def test_costs_round_up_and_are_at_least_a_microsecond() -> None:
    assert operator_cost(Select(Fraction(1, 3), S1), {"s1": 1}).cost_us == 4
    assert operator_cost(Select(HALF, S1), {"s1": 0}) == (1, 0, HALF, 0)


def test_a_selectivity_is_bounded_from_below() -> None:
    thousandth = Fraction(1, 1_000)
    tree = Select(thousandth, Select(thousandth, S1))
    assert operator_cost(tree, {"s1": 10**6}).selectivity == thousandth


def test_table_2_asks_for_one_and_a_half_tracks_at_12_500_tuples_a_second() -> None:
    loads = table_2(12_500)
    assert [load.cost_us for load in loads] == [
        *(50_000, 100_000, 150_000, 225_000, 700_000, 875_000, 1_750_000, 1_350_000, 1_650_000, 300_001),
    ]


trees = st.recursive(
    st.sampled_from([S1, S2, S3]),
    lambda below: st.one_of(
        st.builds(Project, below),
        st.builds(Aggregate, below),
        st.builds(Select, st.fractions(Fraction(1, 100), 1), below),
        st.builds(Join, st.fractions(Fraction(1, 100), 1), below, below),
    ),
    max_leaves=6,
)


@given(trees, st.integers(1, 10**6), st.integers(2, 9))
def test_all_but_the_fixed_part_grows_with_the_tuples(tree: Operator, tuples: int, times: int) -> None:
    one = operator_cost(tree, dict.fromkeys(("s1", "s2", "s3"), tuples))
    more = operator_cost(tree, dict.fromkeys(("s1", "s2", "s3"), tuples * times))
    assert more.fixed_us == one.fixed_us
    assert more.selectivity == one.selectivity
    assert more.tuples == one.tuples * times
    # Each was rounded up.
    assert -1 <= times * (one.cost_us - one.fixed_us) - (more.cost_us - more.fixed_us) <= times
