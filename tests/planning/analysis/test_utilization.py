"""U ≤ m is a verdict, and no rounding may flip it."""

from freshline.planning.analysis.utilization import fits, readable, tracks_at_least, utilization


def test_thirds_that_fill_a_track_fit_it() -> None:
    assert fits([1, 1, 1], [3, 3, 3], 1)
    assert tracks_at_least([1, 1, 1], [3, 3, 3]) == 1


def test_an_excess_far_below_a_float_s_precision_does_not_fit() -> None:
    costs, periods = [1, 1, 10**30], [3, 3, 3 * 10**30 - 1]
    assert utilization(costs, periods) == 1.0
    assert not fits(costs, periods, 1)
    assert tracks_at_least(costs, periods) == 2


def test_a_lack_far_below_a_float_s_precision_fits() -> None:
    costs, periods = [1, 1, 10**30], [3, 3, 3 * 10**30 + 1]
    assert fits(costs, periods, 1)
    assert tracks_at_least(costs, periods) == 1


def test_the_printed_utilization_is_the_float_nearest_to_the_sum() -> None:
    assert utilization([132] * 50, [1000] * 50) == 6.6
    assert utilization([1], [10**18]) == 1e-18


def test_a_hundred_thousand_different_periods_that_fill_their_tracks_but_for_a_hair() -> None:
    periods = [1_000 * (60_000 + number) for number in range(100_000)]
    assert tracks_at_least([period // 4 for period in periods], periods) == 25_000
    assert not fits([period // 4 for period in periods], periods, 24_999)


def test_digits_that_would_hide_the_verdict_give_way_to_words() -> None:
    assert readable(1 + 1e-12, tracks=1, fits=False, digits=4) == "just above 1"
    assert readable(1.0, tracks=1, fits=False, digits=4) == "just above 1"
    assert readable(1.0, tracks=1, fits=True, digits=4) == "1.0000"
    assert readable(1.996, tracks=2, fits=True, digits=2) == "2.00"
    assert readable(2.0051, tracks=2, fits=False, digits=2) == "2.01"
