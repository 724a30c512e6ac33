"""Non-preemptive global EDF: the papers' numbers for x, and x against its formula."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.planning.analysis.np_gedf import NpGedf
from plain_schedulers import Tasks, apart, np_edf_tardiness, task_lists

# Paper 004's task set for m = 4, in tenths of a second: S = 0.01·p, R = 0.1, b = 0.2, so e = 0.132·p.
PERIODS = (3_000, 9_000, 36_000, 288_000)


def paper_004(counts: tuple[int, ...]) -> NpGedf:
    periods = [period for period, count in zip(PERIODS, counts, strict=True) for _ in range(count)]
    return NpGedf([period * 132 // 1000 for period in periods], periods)


@pytest.mark.parametrize("counts", [(3, 3, 3, 21), (2, 2, 2, 17)], ids=["filled by 0.11", "filled by 0.132"])
def test_paper_004_on_four_tracks(counts: tuple[int, ...]) -> None:
    x = paper_004(counts).x(4)
    assert x is not None
    tardiness = [float(x + period * 132 // 1000) / 10 for period in PERIODS]
    assert tardiness == pytest.approx([4247.9, 4327.1, 4683.5, 8009.9], abs=0.05)


def test_more_tracks_can_raise_the_bound_of_paper_004_s_task_set() -> None:
    analysis = paper_004((3, 3, 3, 21))
    assert analysis.x(3) is None
    x = {tracks: ceil(analysis.x(tracks) or 0) for tracks in (4, 20, 21, 22, 30)}
    assert x == {4: 42_084, 20: 43_445, 21: 43_461, 22: 41_746, 30: 31_215}


def test_paper_001_with_the_periods_of_recovery() -> None:
    # Seven tasks of 300 s and seven of 900 s on two tracks, e = 0.11·p; p^[r] = e / min(1, m − U + u) is
    # e / 0.57, and whole in units of 1/1900 s.
    periods = [300 * 1_900] * 7 + [900 * 1_900] * 7
    costs = [period * 11 // 100 for period in periods]
    recovery = [cost * 100 // 57 for cost in costs]
    x = NpGedf(costs, periods, recovery).x(2)
    x_without_recovery = NpGedf(costs, periods).x(2)
    assert x == Fraction(1500, 13) * 1_900
    assert x_without_recovery == Fraction(5500, 63) * 1_900
    assert float(x / 1_900) == pytest.approx(115.4, abs=0.05)
    assert float(x_without_recovery / 1_900) == pytest.approx(87.3, abs=0.05)


def test_on_one_track_x_is_the_spread_of_the_costs() -> None:
    assert NpGedf([5, 2, 3], [50, 20, 30]).x(1) == 3


def test_a_bound_with_fewer_blockers_is_refuted_by_a_schedule() -> None:
    tasks = [(128, 256)] * 2 + [(1, 8)] * 8
    tardiness = np_edf_tardiness(tasks, [0, 0, *[1] * 8], tracks=2, until=4_096)
    analysis = NpGedf(*apart(tasks))
    assert analysis.x(2) == 170
    assert 120 <= max(tardiness[2:]) <= 123  # the refuted bound says 65
    assert all(seen <= cost + 170 for seen, (cost, _) in zip(tardiness, tasks, strict=True))


def test_nothing_is_said_of_an_overload_or_of_a_cost_above_its_period() -> None:
    overload, too_long = NpGedf([2, 2, 2], [3, 3, 3]), NpGedf([4, 1], [3, 9])
    assert (overload.x(1), overload.x(2)) == (None, Fraction(3, 2))
    assert too_long.x(2) is None


@given(task_lists(8, 40), st.integers(0, 9), st.integers(1, 3))
def test_x_is_theorem_1_s_for_every_number_of_tracks(tasks: Tasks, more: int, factor: int) -> None:
    costs, periods = apart(tasks)
    analysis = NpGedf(costs, [period * factor for period in periods], periods)
    tracks = analysis.tracks_at_least + more
    rates = sorted((Fraction(cost, period) for cost, period in tasks), reverse=True)
    excess = sum(sorted(costs, reverse=True)[:tracks]) - min(costs)
    assert analysis.x(tracks) == Fraction(excess) / (tracks - sum(rates[: tracks - 1]))
