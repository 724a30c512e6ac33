"""How the tables of a live run fared, from when files came and when they were loaded; and why."""

from pathlib import Path

import pytest

from freshline.base.duration import SECOND as S
from freshline.testing.network import FeedSpec, Generator
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.outages.live_verdict import (
    LoggedUpdate,
    TableVerdict,
    busy_since,
    fell_behind,
    judge,
)


@pytest.mark.parametrize(
    ("loads", "lag_periods", "caught_up_s"),
    [
        # Files are due at 103, 106, …; those of 109 to 118 come at 120, so the edge goes from 106 to 118.
        ([(104, 103), (107, 106), (121, 112), (122, 118), (123, 121)], 4, 22),
        # Behind again when the file of 124 comes and that of 121 is not loaded.
        ([(104, 103), (107, 106), (121, 118), (125, 121)], 4, 25),
        ([(104, 103), (107, 106), (121, 118)], 4, None),
    ],
)
def test_a_live_table_is_judged_by_what_came_and_what_was_loaded(tmp_path, loads, lag_periods, caught_up_s):
    spec = FeedSpec("v", "csv", 3, 1, phase_s=1, kind="records", outages=((8, 20),))
    generator = Generator([spec], tmp_path, 0, 100 * S)
    assert generator.due_us("v", 1) == 103 * S
    in_us = {"v": [(at * S, reached * S) for at, reached in loads]}
    (verdict,) = judge(in_us, [spec], generator, 100 * S, 126 * S)
    assert (verdict.lag_max, verdict.caught_up_s) == (lag_periods, caught_up_s)
    # Before the outage is over it was never behind.
    (before,) = judge(in_us, [spec], generator, 100 * S, 119 * S)
    assert (before.lag_max, before.caught_up_s) == (1, None)


def update(table: str, start_s: float, end_s: float) -> LoggedUpdate:
    return LoggedUpdate(table, round(start_s * S), round(end_s * S), 0)


def test_tracks_are_busy_since_the_last_one_was_taken() -> None:
    updates = [update("t1", 0, 1), update("t2", 0.5, 2), update("t3", 1.02, 3), update("t4", 2.5, 4)]
    # t3 takes over from t1 at once: no idle time. After t2, at 2, a track is free until 2.5.
    assert busy_since(updates, 2, round(1.9 * S)) == 0.5 * S
    assert busy_since(updates, 2, round(2.3 * S)) == 2.3 * S
    assert busy_since(updates, 2, round(2.9 * S)) == 2.5 * S
    assert busy_since([], 2, 7) == 7


def verdict(table: str, *behind_s: float) -> TableVerdict:
    return TableVerdict(table, 2.0, 6.0, 2.5, None, behind_s)


def test_a_table_that_fell_behind_names_the_updates_that_took_longer(tmp_path: Path) -> None:
    """Declared are 0.4 s and 1 s; t8 takes 2.5, so t5, which waits for it, begins too late."""
    updates = [
        update("t6", 0, 0.3),
        update("t7", 2, 2.4),
        update("t8", 3, 5.5),
        update("t9", 3, 4),
        update("t10", 4, 5.7),
        update("t5", 5.52, 6.2),
    ]
    late = [verdict("t1", 4.0), verdict("t5", 6.0), verdict("t6")]
    said = list(fell_behind(late, updates, 0, 2, (400, 1000), Noise(tmp_path / "nothing")))
    # t5 itself took 0.28 s too long, t10 0.7, t8 1.5; t1 was down, so it is not asked why.
    assert said == [
        "t5 fell behind at 6.0 s; tracks busy from 3.0 s on: of 4 updates 3 took longer than declared, "
        "2.5 s in all"
    ]


def test_many_times_are_cut_short(tmp_path: Path) -> None:
    late = [verdict("t5", *range(3, 60, 3))]
    said = list(fell_behind(late, [], 0, 2, (400, 1000), Noise(tmp_path / "nothing")))
    assert len(said) == 9
    assert said[-1] == "and 11 times more, until 57 s"
