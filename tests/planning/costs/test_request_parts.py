"""How a request is cut into parts, by what they cost."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from freshline.planning.costs.iterations import PastPart
from freshline.planning.costs.requests import PartCost, assumed_cost, learned_cost, part_most_us, part_sizes
from freshline.sql.slices import SLICES

COSTS = st.builds(PartCost, st.floats(1, 2e6), st.floats(0, 1e6))


@given(
    cost=COSTS, most_us=st.integers(1, 500_000), share=st.fractions(min_value=Fraction(1, 10**6), max_value=1)
)
def test_parts_are_short_enough_or_one_slice_and_together_the_share(
    cost: PartCost, most_us: int, share: Fraction
) -> None:
    sizes = part_sizes(cost, most_us, share)
    assert sum(sizes) == max(1, int(SLICES * share))
    # Where not even one slice is short enough, beginning is most of a part.
    longest_us = most_us if cost.slices_in(most_us) else 1.5 * cost.begin_us
    longest = max(1, cost.slices_in(longest_us))
    assert all(1 <= size <= longest for size in sizes)
    assert all(size == 1 or cost.begin_us + cost.slice_us * size <= longest_us * (1 + 1e-9) for size in sizes)
    assert sizes[0] <= max(sizes)
    if len(sizes) > 1:  # no more parts than it takes
        assert len(sizes) == 1 + -(-(sum(sizes) - sizes[0]) // longest)


def test_a_part_is_a_quarter_of_the_deadline_at_most_and_half_a_second() -> None:
    assert part_most_us(1_000_000, 500_000) == 250_000
    assert part_most_us(60_000_000, 500_000) == 500_000


def parts_of(begin_us: int, row_us: float, sizes: list[int], rows: int) -> list[PastPart]:
    return [
        PastPart(number, round(begin_us + row_us * rows * size / SLICES), size, rows * size // SLICES)
        for number, size in enumerate(sizes)
    ]


def test_what_was_learned_follows_the_rows_that_there_are_by_now() -> None:
    assumed = assumed_cost(None, 10_000_000)
    parts = parts_of(100_000, 0.4, [16, 64, 16, 64, 16, 64, 16, 64, 16, 64, 16, 64], 1_000_000)
    for rows in (1_000_000, 3_000_000):
        learned = learned_cost(parts, rows, assumed)
        exact = PartCost(100_000, 0.4 * rows / SLICES)
        for size in (1, 32, 256):
            assert abs(learned.us(size) / exact.us(size) - 1) < 0.01


def test_one_part_in_five_that_took_long_changes_nothing() -> None:
    parts = parts_of(100_000, 0.4, [16, 64] * 20, 1_000_000)
    calm = learned_cost(parts, 1_000_000, assumed_cost(None, 10_000_000))
    disturbed = [
        part._replace(duration_us=5_000_000) if at % 5 == 0 else part for at, part in enumerate(parts)
    ]
    assert learned_cost(disturbed, 1_000_000, assumed_cost(None, 1)).us(64) < 1.5 * calm.us(64)


def test_of_parts_that_are_all_alike_the_length_is_known_and_the_rest_assumed() -> None:
    assumed = PartCost(150_000, 1_000)
    parts = parts_of(60_000, 0.01, [256] * 6, 1_000_000)
    learned = learned_cost(parts, 1_000_000, assumed)
    assert learned.us(256) == 70_000
    assert learned.begin_us / learned.slice_us == 150
    assert learned_cost([], 1_000_000, assumed) == assumed
