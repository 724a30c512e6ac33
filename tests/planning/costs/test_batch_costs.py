"""What jobs of several files cost, learned from runs."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.kernel.tables.batches import BatchCost
from freshline.kernel.tables.events import DataFile
from freshline.planning.costs.batches import fit_batches, fit_single_files
from freshline.planning.costs.fit import PastRun


def runs(seed: int, startup_us: int, per_file_us: int, counts: list[int], noise: float) -> list[PastRun]:
    rng = random.Random(seed)
    return [
        PastRun(at, int((startup_us + per_file_us * files) * rng.uniform(1, 1 + noise)), 20 * files, 1, files)
        for at, files in enumerate(counts)
    ]


SLOW_START = [1, 1, 2, 4, 8, 16, 32, 64]


def test_a_line_is_found_that_most_runs_were_below() -> None:
    fitted = fit_batches(runs(0, 300_000, 2_000, SLOW_START, 0))
    assert fitted == (300_000, 2_000_000, 100_000)


@settings(max_examples=100)
@given(st.integers(0, 1_000), st.integers(1_000, 1_000_000), st.integers(100, 50_000))
def test_with_noise_it_is_no_more_than_that_off(seed: int, startup_us: int, per_file_us: int) -> None:
    fitted = fit_batches(runs(seed, startup_us, per_file_us, SLOW_START * 3, 0.1))
    assert fitted is not None
    for files in (2, 50, 128):
        counted_us = fitted.startup_us + files * fitted.per_file_ns / 1_000
        true_us = startup_us + files * per_file_us
        assert 0.7 * true_us <= counted_us <= 1.6 * true_us


def test_a_first_run_that_took_ten_times_as_long_changes_little() -> None:
    usual = runs(0, 300_000, 2_000, SLOW_START, 0)
    cold = [usual[0]._replace(duration_us=3_000_000), *usual[1:]]
    fitted = fit_batches(cold)
    assert fitted is not None
    assert fitted.startup_us < 400_000


def test_runs_that_are_few_or_alike_do_not_tell() -> None:
    assert fit_batches([]) is None
    assert fit_batches(runs(0, 1, 1, [1] * 50, 0)) is None
    assert fit_batches(runs(0, 1, 1, [1, 1, 1, 2, 4], 0)) is None
    assert fit_batches(runs(0, 1, 1, [50] * 20, 0)) is None


def test_before_there_are_batches_each_file_counts_with_what_it_takes_alone() -> None:
    alone = runs(0, 100_000, 0, [1] * 30, 0)
    assert fit_single_files(alone[:2]) is None
    assert fit_single_files([run._replace(files=4) for run in alone]) is None
    assert fit_single_files(alone) == (0, 100_000_000, 5_000_000)
    cold = [alone[0]._replace(duration_us=3_000_000), *alone[1:10]]
    assert fit_single_files(cold) == (0, 100_000_000, 5_000_000)


def test_files_without_rows_cost_no_row() -> None:
    without = [run._replace(rows=0) for run in runs(0, 300_000, 2_000, SLOW_START, 0)]
    fitted = fit_batches(without)
    assert fitted is not None
    assert fitted.per_row_ns == 0


def test_a_file_of_more_rows_is_counted_as_if_rows_were_all() -> None:
    cost = BatchCost(startup_us=100, per_file_ns=10_000, per_row_ns=1_000)
    small = [DataFile(at, at, 2) for at in range(1, 100)]
    assert cost.fitting(small, 200) == 10
    assert cost.fitting([DataFile(at, at, 50) for at in range(1, 100)], 200) == 2
    assert cost.fitting(small, 105) == 0
