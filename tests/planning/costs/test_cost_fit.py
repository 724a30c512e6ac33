"""A cost learned from runs: the line is found in spite of outliers, and no update is underestimated."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.planning.costs.fit import FittedCost, PastRun, fit, upper

ROWS_PER_SECOND = 2_000


def run(rows: int, duration_us: float, length_us: int | None = None) -> PastRun:
    length_us = rows * SECOND // ROWS_PER_SECOND if length_us is None else length_us
    return PastRun(started=0, duration_us=int(duration_us), rows=rows, length_us=length_us, files=1)


def worst_us(fitted: FittedCost, rows: float) -> float:
    return (1 + fitted.variability) * (fitted.startup_us + fitted.us_per_row * rows)


startups = st.integers(50_000, 2_000_000)
costs_per_row = st.floats(0.5, 50)
seeds = st.integers(0, 2**32)


def random_runs(
    seed: int, count: int, startup: int, per_row: float, rows: tuple[int, int], noise: float, outliers: float
) -> list[PastRun]:
    """Runs along a line, some of them three to twenty times too long."""
    draw = random.Random(seed)
    runs = []
    for number in range(count):
        size = draw.randint(*rows)
        duration = (startup + per_row * size) * draw.uniform(1 - noise, 1 + noise)
        if number < outliers * count:
            duration *= draw.uniform(3, 20)
        runs.append(run(size, duration))
    draw.shuffle(runs)
    return runs


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_runs_tell_nothing(count):
    assert fit([run(1_000, 200_000)] * count) is None


def test_an_exact_line_is_found_exactly():
    runs = [run(rows, 200_000 + 5 * rows) for rows in range(1_000, 101_000, 1_000)]
    assert fit(runs) == FittedCost(
        startup_us=200_000,
        us_per_row=5,
        rows_per_second=ROWS_PER_SECOND,
        variability=pytest.approx(0.01),
        runs=100,
    )


@sampled(100)
@given(seeds, st.integers(200, 2_000), startups, costs_per_row)
def test_the_line_is_recovered_from_noise_and_a_tenth_of_gross_outliers(seed, count, startup, per_row):
    fitted = fit(random_runs(seed, count, startup, per_row, (1_000, 100_000), 0.1, 0.1))
    assert fitted is not None
    for rows in (10_000, 50_000, 100_000):
        line = fitted.startup_us + fitted.us_per_row * rows
        assert line == pytest.approx(startup + per_row * rows, rel=0.2)
    # The slope can be told as well as it matters in an update of usual size.
    usual = startup + per_row * 50_000
    assert fitted.us_per_row * 50_000 == pytest.approx(per_row * 50_000, abs=0.15 * usual)
    assert fitted.startup_us == pytest.approx(startup, abs=0.15 * usual)
    assert fitted.rows_per_second == pytest.approx(ROWS_PER_SECOND, rel=0.01)


runs_of_any_kind = st.lists(
    st.builds(
        run,
        st.integers(0, 1_000_000),
        st.integers(1, 100 * SECOND),
        st.none() | st.just(0) | st.integers(0, 1_800_000_000 * SECOND),
    ),
    min_size=3,
    max_size=100,
)


@sampled(300)
@given(runs_of_any_kind, st.integers(1, 100 * SECOND))
def test_at_most_a_twentieth_of_the_runs_or_one_took_longer_than_the_worst_case(runs, longest_us):
    fitted = fit(runs, longest_us)
    assert fitted is not None
    rate = fitted.us_per_row * fitted.rows_per_second / SECOND
    worst = (1 + fitted.variability) * (fitted.startup_us + rate * longest_us) * (1 + 1e-9)
    within = [run for run in runs if run.length_us <= longest_us]
    longer = sum(run.duration_us > worst for run in within)
    assert longer <= max(1, len(runs) // 20)


@sampled(300)
@given(runs_of_any_kind, st.none() | st.integers(1, 100 * SECOND))
def test_more_rows_never_cost_less(runs, longest_us):
    fitted = fit(runs, longest_us)
    assert fitted is not None
    assert fitted.startup_us >= 1
    assert fitted.us_per_row >= 0
    assert fitted.variability >= 1 / len(runs) - 1e-9


@sampled(200)
@given(runs_of_any_kind, st.floats(1, 10))
def test_slower_runs_never_make_the_usual_update_cheaper(runs, factor):
    slower = [entry._replace(duration_us=int(entry.duration_us * factor) + 1) for entry in runs]
    before, after = fit(runs), fit(slower)
    assert before is not None
    assert after is not None
    rows = sorted(run.rows for run in runs)[len(runs) // 2]
    assert worst_us(after, rows) >= 0.99 * worst_us(before, rows) - 10


@sampled(200)
@given(seeds, st.integers(3, 60), startups, st.just(0) | costs_per_row, st.floats(0.1, 10))
def test_no_split_of_equal_updates_underestimates_another_length(seed, count, startup, per_row, factor):
    """Equal updates fit start-up alone, rows alone, and all between: whichever it was must be covered."""
    runs = random_runs(seed, count, startup, per_row, (8_000, 8_400), 0.0, 0.0)
    rows_planned = 8_200 * factor
    fitted = fit(runs, int(rows_planned / ROWS_PER_SECOND * SECOND))
    assert fitted is not None
    assert worst_us(fitted, rows_planned) >= (startup + per_row * rows_planned) * 0.99


@sampled(200)
@given(seeds, st.integers(3, 300), startups, st.just(0) | costs_per_row, st.floats(0.1, 10))
def test_noisy_updates_of_many_sizes_do_not_make_another_length_look_cheap(
    seed, count, startup, per_row, factor
):
    runs = random_runs(seed, count, startup, per_row, (5_000, 12_000), 0.1, 0.0)
    rows_planned = 8_500 * factor
    fitted = fit(runs, int(rows_planned / ROWS_PER_SECOND * SECOND))
    assert fitted is not None
    assert worst_us(fitted, rows_planned) >= (startup + per_row * rows_planned) * 0.85


def test_equal_updates_are_all_start_up_for_a_shorter_plan_and_all_rows_for_a_longer():
    runs = [run(8_000, 240_000)] * 20
    usual_us = 4 * SECOND
    half = FittedCost(240_000, 0.0, ROWS_PER_SECOND, pytest.approx(0.05), 20)
    assert fit(runs, usual_us // 2) == half
    assert fit(runs, usual_us) == half
    assert fit(runs, 2 * usual_us) == FittedCost(1, 30.0, ROWS_PER_SECOND, pytest.approx(0.05), 20)


def test_rows_within_a_tenth_are_too_alike_to_tell_the_cost_per_row():
    # They seem to show that rows cost nothing; twice as many may show otherwise.
    runs = [run(rows, 240_000) for rows in range(8_000, 8_500, 10)]
    fitted = fit(runs, 8 * SECOND)
    assert fitted is not None
    assert (fitted.startup_us, fitted.us_per_row) == (1, 240_000 / 8_245)


def test_a_first_run_that_warms_up_the_jvm_does_not_count():
    runs = [run(8_000, 3_000_000, 1_700_000_000 * SECOND), run(8_000, 250_000), run(8_000, 240_000)]
    assert fit(runs, 4 * SECOND) == FittedCost(250_000, 0.0, ROWS_PER_SECOND, pytest.approx(1 / 3), 3)


def test_rows_that_vary_while_the_length_does_not_are_variability():
    # Three seconds of data are 2,000 to 10,000 rows: a plan by length must count with the larger ones.
    runs = [run(rows, 100_000 + 20 * rows, 3 * SECOND) for rows in range(2_000, 10_080, 80)]
    fitted = fit(runs, 3 * SECOND)
    assert fitted is not None
    assert (fitted.startup_us, fitted.us_per_row) == (100_000, 20)
    assert worst_us(fitted, 3 * fitted.rows_per_second) == pytest.approx(100_000 + 20 * 9_600, rel=0.01)


def test_updates_without_rows_have_a_start_up_only():
    assert fit([run(0, 90_000, SECOND)] * 4, SECOND) == FittedCost(90_000, 0.0, 0.0, 0.25, 4)


def test_late_files_of_no_length_are_learned_from_too():
    runs = [run(8_000, 240_000, 0)] * 4
    assert fit(runs, 3 * SECOND) == FittedCost(240_000, 0.0, 0.0, 0.25, 4)


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 1), (2, 1), (3, 2), (20, 19), (39, 38), (40, 38), (100, 95), (2_000, 1_900)]
)
def test_the_upper_quantile_leaves_out_the_largest_or_a_twentieth(count, expected):
    values = list(range(1, count + 1))
    random.Random(0).shuffle(values)
    assert upper(values) == expected
