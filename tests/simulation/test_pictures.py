"""What the pictures of a run show."""

from array import array
from dataclasses import replace

from matplotlib.figure import Figure

from freshline.base.duration import DAY, HOUR, MINUTE, SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.pictures.bars import Bar, first_bars
from freshline.pictures.figures import thinned
from freshline.pictures.lag import lag_figure
from freshline.planning.plan.make import make_plan
from freshline.simulation import drawing
from freshline.simulation.drawing import draw, lags, spans_of
from freshline.simulation.job_records import JobRecords
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.testing.builder import Builder


def kept(builder: Builder, end: int) -> JobRecords:
    records = simulate(make_plan(builder.build()), end, keep_records=True).records
    assert records is not None
    return records


def test_a_job_longer_than_what_is_shown_is_drawn():
    builder = Builder(tracks=2).continuous("a", period=60, cost=20)
    records = kept(builder.continuous("b", period=86_400, cost=72_000), 3 * DAY)
    bars, until = first_bars(records.bars, 3 * DAY)
    assert until == 299 * MINUTE  # the 301st start: b's first and a's before it
    assert [bar for bar in bars if bar.task == "b"] == [Bar("b", 1, 0, 20 * HOUR)]
    assert len(bars) == 300


def test_a_job_that_is_unfinished_at_the_end_is_drawn_up_to_the_end():
    records = kept(Builder().continuous("a", period=10, cost=6), 23 * SECOND)
    assert first_bars(records.bars, 23 * SECOND) == (
        [Bar("a", 0, 10 * n * SECOND, end * SECOND) for n, end in ((0, 6), (1, 16), (2, 23))],
        23 * SECOND,
    )


def test_only_as_many_tracks_are_drawn_as_can_be_told_apart():
    builder = Builder(tracks=500)
    for number in range(400):
        builder.continuous(f"t{number}", period=10, cost=6)
    bars, until = first_bars(kept(builder, 100 * SECOND).bars, 100 * SECOND)
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
    result = simulate(make_plan(warehouse), 100 * SECOND, keep_records=True)
    for picture in draw(result, tmp_path):
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_records_keep_forty_bytes_a_job():
    records = kept(Builder().continuous("a", period=10, cost=6), 995 * SECOND)
    arrays = [value for value in vars(records).values() if isinstance(value, array)]
    assert sum(len(each) * each.itemsize for each in arrays) == 40 * 99


def with_outages(policy: PolicyName = "edf") -> SimulationResult:
    builder = Builder(policy=policy).files("a", period=10, phase=10, cost=3).files("b", period=10, phase=10)
    outages = {
        "a": [(45 * SECOND, 85 * SECOND)],
        "b": [(45 * SECOND, 85 * SECOND), (100 * SECOND, 120 * SECOND)],
    }
    plan = make_plan(builder.derived("c", ["a"], period=30).build())
    return simulate(plan, 200 * SECOND, outages=outages, keep_records=True)


def labels(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_feeds_that_are_down_together_are_named_together():
    assert spans_of(with_outages().outages) == [
        ("a, b down", 45 * SECOND, 85 * SECOND),
        ("b down", 100 * SECOND, 120 * SECOND),
    ]
    assert spans_of({f"f{number}": ((1, 2),) for number in range(5)}) == [("5 feeds down", 1, 2)]


def test_outages_are_shaded_and_named(tmp_path, monkeypatch):
    figures: dict[str, Figure] = {}
    monkeypatch.setattr(drawing, "save", lambda figure, path: figures.update({path.name: figure}))
    draw(with_outages(), tmp_path)
    for name in ("staleness.png", "lag.png"):
        assert labels(figures[name])[-2:] == ["a, b down", "b down"]
        for axes in figures[name].axes:
            shaded = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches]
            assert shaded == [(45 / 60, 85 / 60), (100 / 60, 120 / 60)]


def test_tables_of_one_period_share_axes_of_lag(tmp_path, monkeypatch):
    figures: dict[str, Figure] = {}
    monkeypatch.setattr(drawing, "save", lambda figure, path: figures.update({path.name: figure}))
    result = with_outages()
    draw(result, tmp_path)
    shown = {
        axes.get_title(): [line.get_label() for line in axes.get_lines()] for axes in figures["lag.png"].axes
    }
    assert shown == {"period 10s": ["a", "b"], "period 30s": ["c"]}
    line = figures["lag.png"].axes[0].get_lines()[0]
    assert max(line.get_ydata()) == result.tables[0].lag_max_us / SECOND


def test_runs_are_compared_on_one_scale():
    runs = {policy: with_outages(policy) for policy in ("prp", "edf")}
    groups = {"fed": ["a", "b"], "derived": ["c"]}
    figure = lag_figure({name: lags(run, groups) for name, run in runs.items()}, "lag")
    titles = [axes.get_title() for axes in figure.axes]
    assert sorted(titles) == ["edf: derived", "edf: fed", "prp: derived", "prp: fed"]
    heights = {axes.get_title(): axes.get_ylim()[1] for axes in figure.axes}
    assert heights["edf: fed"] == heights["prp: fed"]
    assert heights["edf: derived"] == heights["prp: derived"]
    assert labels(figure) == ["a, b down", "b down"]
    rows = {axes.get_title(): axes.get_subplotspec().rowspan.start for axes in figure.axes}
    assert rows == {"prp: fed": 0, "prp: derived": 0, "edf: fed": 1, "edf: derived": 1}


def test_the_lag_of_a_table_that_never_loads_is_drawn():
    plan = make_plan(Builder().files("a", period=10, phase=500).build())
    result = simulate(plan, 100 * SECOND, keep_records=True)
    (axes,) = lag_figure({"run": lags(result, {"all": ["a"]})}, "lag").axes
    assert list(axes.get_lines()[0].get_ydata()) == [0, 0]
