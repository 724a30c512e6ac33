"""Sums of rationals are decided exactly, however close they come to the decision."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from freshline.planning.analysis.exact import bracketed_sum, exact_sum

quotients = st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), max_size=20)
few_denominators = st.lists(st.tuples(st.integers(1, 12), st.sampled_from([2, 3, 4, 6, 12])), max_size=20)


@given(quotients)
def test_the_tree_of_products_gives_the_sum_of_fractions(pairs: list[tuple[int, int]]) -> None:
    total = exact_sum([a for a, _ in pairs], [b for _, b in pairs])
    assert Fraction(*total) == sum(Fraction(a, b) for a, b in pairs)


@given(quotients | few_denominators)
def test_decisions_on_a_bracketed_sum_are_those_on_the_exact_sum(pairs: list[tuple[int, int]]) -> None:
    exact = sum((Fraction(a, b) for a, b in pairs), Fraction(0))
    bracketed = bracketed_sum([a for a, _ in pairs], [b for _, b in pairs])
    ceiling = -(-exact.numerator // exact.denominator)
    assert bracketed.ceiling() == ceiling
    assert [bracketed.at_most(bound) for bound in (ceiling - 1, ceiling)] == [exact <= ceiling - 1, True]


@given(few_denominators, few_denominators, st.integers(1, 5), st.integers(1, 5))
def test_shares_of_sums_are_compared_exactly(
    pairs: list[tuple[int, int]], others: list[tuple[int, int]], share: int, other_share: int
) -> None:
    one = bracketed_sum([a for a, _ in pairs], [b for _, b in pairs])
    other = bracketed_sum([a for a, _ in others], [b for _, b in others])
    exact = sum((Fraction(a, b) for a, b in pairs), Fraction(0)) / share
    other_exact = sum((Fraction(a, b) for a, b in others), Fraction(0)) / other_share
    assert one.exceeds(other, share, other_share) == (exact > other_exact)
