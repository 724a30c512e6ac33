"""What the pictures of a run show."""

from array import array
from dataclasses import replace

from freshline.definitions.duration import DAY, HOUR, MINUTE, SECOND
from freshline.plan.make import make_plan
from freshline.simulation.observation import History
from freshline.simulation.plots import Bar, draw, first_bars, thinned
from freshline.simulation.simulate import simulate
from freshline.testing.builder import Builder


def kept(builder: Builder, end: int) -> History:
    history = simulate(make_plan(builder.build()), end, keep_history=True).history
    assert history is not None
    return history


def test_a_job_longer_than_what_is_shown_is_drawn():
    builder = Builder(tracks=2).continuous("a", period=60, cost=20)
    history = kept(builder.continuous("b", period=86_400, cost=72_000), 3 * DAY)
    bars, until = first_bars(history, 3 * DAY)
    assert until == 299 * MINUTE  # the 301st start: b's first and a's before it
    assert [bar for bar in bars if bar.table == 1] == [Bar(1, 1, 0, 20 * HOUR)]
    assert len(bars) == 300


def test_a_job_that_is_unfinished_at_the_end_is_drawn_up_to_the_end():
    history = kept(Builder().continuous("a", period=10, cost=6), 23 * SECOND)
    assert first_bars(history, 23 * SECOND) == (
        [Bar(0, 0, 10 * n * SECOND, end * SECOND) for n, end in ((0, 6), (1, 16), (2, 23))],
        23 * SECOND,
    )


def test_only_as_many_tracks_are_drawn_as_can_be_told_apart():
    builder = Builder(tracks=500)
    for number in range(400):
        builder.continuous(f"t{number}", period=10, cost=6)
    bars, until = first_bars(kept(builder, 100 * SECOND), 100 * SECOND)
    assert {bar.track for bar in bars} == set(range(60))
    assert until == 50 * SECOND


def test_few_points_are_all_kept():
    points = [(0, 0), (7, 7), (7, 2), (9, 4)]
    assert thinned(points, 999) == points


def test_of_a_pixel_the_first_lowest_highest_and_last_points_are_kept():
    pixel = [(100, 5), (101, 6), (101, 3), (102, 9), (102, 4), (103, 7)]
    points = [(99, 1), *pixel, (200, 2)]
    assert thinned(points, 99_999) == [(99, 1), (100, 5), (101, 3), (102, 9), (103, 7), (200, 2)]


def test_the_whole_of_a_long_run_is_shown_with_its_highest_staleness():
    points = [(at, at % 61) for at in range(100_000)]
    points[77_777] = (77_777, 1_000)
    shown = thinned(points, 99_999)
    assert len(shown) <= 4_000
    assert (shown[0], shown[-1]) == (points[0], points[-1])
    assert points[77_777] in shown


def test_names_are_drawn_as_they_are_written(tmp_path):
    warehouse = replace(Builder().continuous("a", period=10, cost=6).build(), name="$x_{$")
    result = simulate(make_plan(warehouse), 100 * SECOND, keep_history=True)
    for picture in draw(result, tmp_path):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_history_keeps_forty_bytes_a_job():
    history = kept(Builder().continuous("a", period=10, cost=6), 995 * SECOND)
    arrays = [value for value in vars(history).values() if isinstance(value, array)]
    assert sum(len(each) * each.itemsize for each in arrays) == 40 * 99
