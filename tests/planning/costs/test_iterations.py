"""What answers cost, learned from their parts."""

from fractions import Fraction
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from freshline.planning.costs.iterations import FittedParts, PastPart, fit_parts
from freshline.sql.slices import SLICES


def answers(count: int, part_us: int, us_per_row: float, rest_us: int, noise: float, seed: int = 0):
    """Parts of unlike sizes, as they took if each varies by up to so much."""
    random = Random(seed)
    parts = []
    for number in range(count):
        for slices in (16, 48, 192):
            rows = slices * random.randint(90, 110)
            took_us = (part_us + us_per_row * rows) * (1 + random.uniform(-noise, noise))
            parts.append(PastPart(number, round(took_us), slices, rows))
        parts.append(PastPart(number, rest_us, 0, 100))
    return parts


@given(
    st.integers(5, 40),
    st.integers(20_000, 500_000),
    st.floats(0, 20),
    st.integers(0, 100_000),
    st.floats(0, 0.3),
    st.integers(0, 1_000),
)
def test_what_was_learned_is_seldom_exceeded_and_not_far_above(
    count: int, part_us: int, us_per_row: float, rest_us: int, noise: float, seed: int
) -> None:
    parts = answers(count, part_us, us_per_row, rest_us, noise, seed)
    fitted = fit_parts(parts)
    assert fitted is not None
    assert fitted.rest_us == rest_us
    reading = [part for part in parts if part.slices]
    beyond = sum(part.duration_us > fitted.read_us(part.rows) for part in reading)
    assert beyond <= max(1, 0.05 * len(reading))
    # Never more than what the noise explains, with the uncertainty of the slope.
    assert fitted.read_us(100 * SLICES) <= (part_us + us_per_row * 100 * SLICES) * (1 + 4 * noise) + 10


def test_few_answers_or_parts_that_are_alike_tell_nothing() -> None:
    assert fit_parts([]) is None
    assert fit_parts(answers(2, 50_000, 1.0, 0, 0.1)) is None
    alike = [PastPart(number, 50_000 + number, 256, 25_600) for number in range(40)]
    assert fit_parts(alike) is None


def test_the_cost_of_an_answer_counts_each_part_and_what_is_there_without_any_row() -> None:
    fitted = FittedParts(100_000, 2.0, 50_000, Fraction(1, 2), 9)
    # 1,000 rows a slice, 2 ms each; parts of 300 ms read 100 slices: three parts.
    assert fitted.slices_in(300_000, 1_000) == 100
    assert fitted.cost_us(256_000, 300_000) == (50_000 + 3 * 100_000 + 512_000, 150_000)
    assert fitted.slices_in(100_000, 1_000) == 0
    assert fitted.slices_in(100_000, 0) == SLICES
    assert fitted.slices_in(99_999, 0) == 0


def test_selectivity_is_rows_of_answers_over_rows_read() -> None:
    parts = answers(10, 50_000, 1.0, 0, 0.1)
    fitted = fit_parts(parts)
    assert fitted is not None
    read = sum(part.rows for part in parts if part.slices)
    assert abs(fitted.selectivity - Fraction(1_000, read)) <= Fraction(1, 1_000_000)
    nothing = [part if part.slices else part._replace(rows=0) for part in parts]
    found = fit_parts(nothing)
    assert found is not None
    assert found.selectivity == Fraction(1, 1_000)
