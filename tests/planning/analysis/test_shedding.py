"""What continuous queries give up so that all meet their deadlines."""

import random
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from freshline.planning.analysis.best_shedding import best
from freshline.planning.analysis.demand import Demand
from freshline.planning.analysis.demand_of_few import DemandOfFew
from freshline.planning.analysis.demand_of_many import DemandOfMany
from freshline.planning.analysis.levels import QueryLoad, by_priority, is_schedulable
from freshline.planning.analysis.scheduling_points import bini_buttazzo
from freshline.planning.analysis.shedding import Rule, keep, raised, shed, shed_in_order, weighted_error
from freshline_lab.campaigns.recovery.overloads import overloaded
from freshline_lab.experiments.queries.table_2 import table_2
from query_loads import load, loads, overrun, points

RULES: tuple[Rule, ...] = ("paper", "least-overrun", "least-error")


def fits_at_least(queries: list[QueryLoad]) -> bool:
    return is_schedulable(queries, [query.least_us for query in queries])


def shed_all(queries: list[QueryLoad], rule: Rule) -> list[int]:
    costs = shed(queries, rule)
    assert costs is not None
    return costs


@pytest.mark.parametrize(
    ("rule", "error"), [("paper", 229_702), ("least-overrun", 187_927), ("least-error", 128_036)]
)
def test_table_2_at_one_and_a_half_tracks(rule: Rule, error: int) -> None:
    queries = table_2(12_500)
    assert round(weighted_error(queries, shed_all(queries, rule))) == error


def test_table_2_has_no_lower_error_than_that_of_the_rule() -> None:
    queries = table_2(12_500)
    costs = best(queries)
    assert costs is not None
    assert round(weighted_error(queries, costs)) == 128_036


def test_what_fits_is_left_alone_and_what_cannot_fit_is_said() -> None:
    fitting = [load("a", 4, 2), load("b", 5, 2)]
    hopeless = [load("a", 4, 4, least=3), load("b", 5, 5, least=3)]
    for rule in RULES:
        assert shed(fitting, rule) == [2, 2]
        assert shed(hopeless, rule) is None
        assert shed([], rule) == []
    assert best(fitting) == [2, 2]
    assert best(hopeless) is None


def test_the_paper_cuts_all_in_inverse_proportion_to_weight_and_no_one_below_its_least() -> None:
    light, heavy = load("light", 100, 60), load("heavy", 100, 60)._replace(weight=Fraction(3))
    # An overrun of 20: 15 from the light one, 5 from the heavy one.
    assert shed_all([light, heavy], "paper") == [45, 55]
    assert shed_all([light._replace(least_us=50), heavy], "paper") == [50, 50]


def test_least_error_cuts_whoever_loses_least_for_the_time_freed() -> None:
    light, heavy = load("light", 100, 60), load("heavy", 100, 60)._replace(weight=Fraction(3))
    assert shed_all([light, heavy], "least-error") == [40, 60]
    assert shed_all([light._replace(least_us=50), heavy], "least-error") == [50, 50]


def test_keep_is_of_the_part_that_is_not_fixed() -> None:
    query = load("a", 100, 60, fixed=20)
    assert keep(query, 40) == Fraction(1, 2)
    assert keep(query, 100) == 1
    assert keep(query, 10) < 0
    assert keep(load("a", 100, 60, fixed=60), 60) == 1


@given(loads(unit=1_000, factor=3), st.sampled_from(RULES))
def test_after_shedding_the_exact_test_passes(queries: list[QueryLoad], rule: Rule) -> None:
    costs = shed(queries, rule)
    assert (costs is not None) == fits_at_least(queries)
    if costs is not None:
        assert is_schedulable(queries, costs)
        for query, cost in zip(queries, costs, strict=True):
            assert query.least_us <= cost <= query.cost_us
        assert (costs == [query.cost_us for query in queries]) == is_schedulable(queries)


@given(loads(unit=1_000, factor=3))
def test_least_error_is_never_above_the_papers(queries: list[QueryLoad]) -> None:
    assume(fits_at_least(queries))
    assert weighted_error(queries, shed_all(queries, "least-error")) <= weighted_error(
        queries, shed_all(queries, "paper")
    )


@settings(max_examples=40)
@given(loads(size_max=4, unit=1_000, factor=3))
def test_the_best_is_schedulable_and_no_rule_is_better(queries: list[QueryLoad]) -> None:
    assume(fits_at_least(queries))
    costs = best(queries)
    assert costs is not None
    assert is_schedulable(queries, costs)
    error = weighted_error(queries, costs)
    assert all(
        error <= weighted_error(queries, shed_all(queries, rule)) * Fraction(10_001, 10_000) for rule in RULES
    )


@settings(max_examples=40)
@given(loads(size_max=3, period_max=8, factor=3))
def test_the_best_is_that_of_all_costs_there_are(queries: list[QueryLoad]) -> None:
    assume(fits_at_least(queries))
    of_all = min(
        weighted_error(queries, costs)
        for costs in product(*(range(query.least_us, query.cost_us + 1) for query in queries))
        if is_schedulable(queries, costs)
    )
    costs = best(queries)
    assert costs is not None
    # The program is in real numbers, and a cost in whole ones: one of each query may be lost.
    one_each = sum(
        (
            query.weight
            * query.selectivity
            * query.tuples
            * 1_000_000
            / ((query.cost_us - query.fixed_us) * query.period_us)
            for query in queries
            if query.cost_us > query.fixed_us
        ),
        start=Fraction(0),
    )
    assert of_all <= weighted_error(queries, costs) <= of_all * Fraction(10_001, 10_000) + one_each


@given(loads(unit=1_000, factor=3), st.sampled_from(RULES))
def test_lists_and_arrays_do_the_same(queries: list[QueryLoad], rule: Rule) -> None:
    ordered = [queries[place] for place in by_priority(queries)]

    def error(demand: Demand) -> Fraction | None:
        costs = shed_in_order(ordered, demand, rule)
        return None if costs is None else weighted_error(ordered, costs)

    of_few, of_many = error(DemandOfFew(ordered)), error(DemandOfMany(ordered))
    if of_few is None or of_many is None:
        assert of_few is of_many
    elif rule != "least-error":  # there, points of equal errors are told apart by the last digits of floats
        assert abs(of_few - of_many) <= one_microsecond_each(ordered)


def one_microsecond_each(queries: list[QueryLoad]) -> Fraction:
    return sum(
        (
            weighted_error([query], [query.cost_us - 2])
            for query in queries
            if query.cost_us - query.fixed_us > 2
        ),
        start=Fraction(1),
    )


@given(loads(unit=1_000, factor=1))
def test_raised_costs_still_pass_and_a_slightly_larger_factor_does_not(queries: list[QueryLoad]) -> None:
    assume(is_schedulable(queries))
    costs = [query.cost_us for query in queries]
    higher = raised(queries, costs)
    assert is_schedulable(queries, higher)
    assert all(more >= cost for more, cost in zip(higher, costs, strict=True))
    # Each was rounded down by less than one: one more for each, and a thousandth, is too much.
    assert not is_schedulable(queries, [more + 1 + more // 1_000 for more in higher])


@given(loads(unit=1_000, factor=3))
def test_what_was_shed_can_be_raised(queries: list[QueryLoad]) -> None:
    assume(fits_at_least(queries))
    costs = shed_all(queries, "least-error")
    higher = raised(queries, costs)
    assert is_schedulable(queries, higher)
    assert all(more >= cost for more, cost in zip(higher, costs, strict=True))


@given(loads(size_max=5, period_max=20))
def test_the_points_of_bini_and_buttazzo_decide_a_level(queries: list[QueryLoad]) -> None:
    ordered = [queries[place] for place in by_priority(queries)]
    costs = [query.cost_us for query in ordered]
    periods, deadlines = [query.period_us for query in ordered], [query.deadline_us for query in ordered]
    for level in range(len(ordered)):
        fewer = bini_buttazzo(level, periods, deadlines)
        assert any(overrun(ordered, costs, level, instant) <= 0 for instant in fewer) == any(
            overrun(ordered, costs, level, instant) <= 0 for instant in points(ordered, level)
        )


@pytest.mark.parametrize("strides", [40, 150])
def test_beyond_a_hundred_queries_all_promises_hold_too(strides: int) -> None:
    rng = random.Random(strides)
    for _ in range(5):
        different = [rng.randrange(100_000, 2_000_000) for _ in range(strides)]
        queries = [
            query._replace(part_us=rng.randrange(2_000))
            for query in overloaded(rng, queries=150, strides_us=different, utilization=1.5)
        ]
        costs = {rule: shed_all(queries, rule) for rule in RULES}
        for each in costs.values():
            assert is_schedulable(queries, each)
        assert weighted_error(queries, costs["least-error"]) <= weighted_error(queries, costs["paper"])
        assert is_schedulable(queries, raised(queries, costs["least-error"]))


def test_points_that_are_left_out_make_no_verdict_wrong() -> None:
    # A stride of 2 µs has more releases within a minute than are looked at.
    queries = [
        load("a", 2, 1),
        load("b", 60_000_000, 25_000_000),
        load("c", 60_000_000, 25_000_000, part=1),
    ]
    for rule in RULES:
        assert is_schedulable(queries, shed_all(queries, rule))
