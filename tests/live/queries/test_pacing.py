"""How many slices parts of an iteration read: within budgets, whatever these are, and giving way in time."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from freshline.live.queries.pacing import Pacing
from freshline.planning.costs.iterations import FittedParts
from freshline.sql.slices import SLICES

FITTED = st.builds(
    FittedParts,
    st.integers(1, 500_000),
    st.integers(0, 50_000).map(lambda thousandths: thousandths / 1_000),
    st.integers(0, 500_000),
    st.just(Fraction(1)),
    st.just(10),
)


def read_all(pacing: Pacing, took_us, rows: int = 1_000) -> list[int]:
    """Reads until there is nothing more to read, and puts the answer together."""
    sizes = []
    while (slices := pacing.next_slices()) > 0:
        assert len(sizes) < SLICES
        pacing.took(0, slices, slices * rows, took_us(slices, slices * rows))
        sizes.append(slices)
    return sizes


@given(
    FITTED, st.integers(0, 5_000), st.integers(0, 5_000_000), st.integers(0, 1_000_000), st.integers(1, 40)
)
def test_where_parts_cost_what_was_learned_no_budget_is_exceeded(
    fitted: FittedParts, rows: int, budget_us: int, part_us: int, number: int
) -> None:
    assume(budget_us >= fitted.rest_us)
    pacing = Pacing(number, budget_us, Fraction(1), part_us, fitted, rows)
    sizes = read_all(pacing, lambda slices, read: fitted.read_us(read), rows)
    pacing.rested(fitted.rest_us)
    assert pacing.spent_us <= budget_us
    assert sum(sizes) == pacing.read <= SLICES
    assert pacing.read != 1  # one slice has no scatter


@given(FITTED, st.integers(0, 5_000), st.integers(0, 1_000_000), st.integers(1, 40))
def test_without_a_budget_all_is_read_in_parts_that_give_way_in_time(
    fitted: FittedParts, rows: int, part_us: int, number: int
) -> None:
    pacing = Pacing(number, None, Fraction(1), part_us, fitted, rows)
    sizes = read_all(pacing, lambda slices, read: fitted.read_us(read), rows)
    assert sum(sizes) == SLICES
    for slices in sizes:
        assert slices == 1 or fitted.read_us(slices * rows) <= part_us + 1


@given(FITTED, st.integers(0, 5_000), st.integers(1, 40))
def test_a_budget_of_the_whole_cost_reads_the_whole_window(fitted, rows: int, number: int) -> None:
    part_us = 4 * fitted.part_us
    cost_us, fixed_us = fitted.cost_us(rows * SLICES, part_us)
    assert fixed_us <= cost_us
    number += number % 16 == 0  # one that looks again takes a part more
    pacing = Pacing(number, cost_us, Fraction(1), part_us, fitted, rows)
    read_all(pacing, lambda slices, read: fitted.part_us + fitted.us_per_row * read, rows)
    # What is lost is less than a slice, by rounding.
    assert pacing.read >= SLICES - 1


@given(st.fractions(0, 1), st.integers(1, 40))
def test_no_more_is_read_than_is_to_be_kept(keep: Fraction, number: int) -> None:
    pacing = Pacing(number, None, keep, 100_000, FittedParts(1_000, 0.1, 1_000, Fraction(1), 9), 100)
    read_all(pacing, lambda slices, read: 1_000)
    assert pacing.read <= max(2, SLICES * keep)
    assert (pacing.read == 0) == (keep == 0)


def test_where_nothing_is_known_parts_of_unlike_sizes_are_read() -> None:
    def sizes(number: int, budget_us: int | None) -> list[int]:
        pacing = Pacing(number, budget_us, Fraction(1), 100_000, None, 0)
        return read_all(pacing, lambda slices, read: 1_000)

    assert [sizes(number, None) for number in (1, 2, 3)] == [[16, 240], [64, 192], [256]]
    assert [sizes(number, 1_500) for number in (1, 2, 3, 4)] == [[16], [64], [256], [16]]


@given(st.integers(1, 200_000), st.integers(0, 1_000), st.integers(1, 3_000_000))
def test_where_nothing_is_known_only_the_first_part_can_exceed_the_budget(
    fixed_us: int, slice_us: int, budget_us: int
) -> None:
    pacing = Pacing(1, budget_us, Fraction(1), 100_000, None, 0)
    sizes = read_all(pacing, lambda slices, read: fixed_us + slice_us * slices)
    assert pacing.spent_us <= budget_us or len(sizes) == 1


@pytest.mark.parametrize("number", [16, 32])
def test_now_and_then_an_iteration_looks_again_by_a_part_of_another_size(number: int) -> None:
    fitted = FittedParts(1_000, 0.1, 1_000, Fraction(1), 9)
    usual = read_all(Pacing(1, None, Fraction(1), 10_000_000, fitted, 100), lambda slices, read: 1_000)
    looks = read_all(Pacing(number, None, Fraction(1), 10_000_000, fitted, 100), lambda slices, read: 1_000)
    assert usual == [256]
    assert looks == [32, 224]


def test_a_window_that_holds_more_than_expected_is_noticed_in_its_first_part() -> None:
    fitted = FittedParts(1_000, 1.0, 1_000, Fraction(1), 9)
    pacing = Pacing(1, 100_000, Fraction(1), 30_000, fitted, 100)
    first = pacing.next_slices()
    pacing.took(0, first, first * 1_000, 1_000 + first * 1_000)
    assert pacing.next_slices() < first


@given(FITTED, st.integers(0, 5_000), st.integers(1, 40))
def test_who_looks_reads_a_little_where_there_is_no_time(fitted, rows: int, number: int) -> None:
    for look, expected in ((0, []), (2, [2]), (8, [8])):
        pacing = Pacing(number, fitted.rest_us, Fraction(1), 4 * fitted.part_us, fitted, rows, look)
        assert read_all(pacing, lambda slices, read: fitted.read_us(read), rows) == expected
