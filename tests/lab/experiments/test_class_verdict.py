"""What is said of a live run with service classes."""

from pathlib import Path

from freshline_lab.experiments.classes.class_verdict import (
    class_figures,
    in_time,
    phases_of,
    requirements,
    worst_inversion,
)
from freshline_lab.experiments.classes.live_classes_page import write_live_page
from freshline_lab.experiments.classes.request_load import SentRequest, poisson


def said(
    at_s: float, name: str = "one", status: int = 200, took_s: float = 1.0, error: float = 0.0
) -> SentRequest:
    return SentRequest(at_s, name, status, took_s, 2.0, 1.0 if status != 200 else error)


def test_a_class_is_told_in_percent_and_those_turned_away_have_no_error() -> None:
    all_said = [said(1, error=0.5), said(2, status=504), said(3, status=429), said(4), said(50)]
    assert class_figures(all_said, "one", 0, 10) == {
        "class": "one",
        "submitted": 4,
        "admitted": 75.0,
        "ate": 50.0,
        "unanswered": 100 / 3,
    }
    assert class_figures(all_said, "two", 0, 10)["ate"] is None


def test_answers_are_in_time_within_a_tenth_of_their_deadline() -> None:
    assert in_time([said(0, took_s=2.19), said(1, took_s=2.21), said(2, status=504, took_s=9.0)]) == 0.5
    assert in_time([]) is None


def test_a_lesser_class_that_is_admitted_more_often_is_an_inversion() -> None:
    even = [said(at, name, 429 if at % 2 else 200) for at in range(20) for name in ("one", "two")]
    assert worst_inversion(even, ("one", "two")) == 0.0
    turned = [said(at, "one", 429 if at < 5 else 200) for at in range(20)] + [
        said(at, "two") for at in range(20)
    ]
    assert worst_inversion(turned, ("one", "two")) == 5.0
    assert worst_inversion(turned, ("two", "one")) == 0.0


def test_phases_begin_once_they_have_settled() -> None:
    all_said = [said(at, error=1.0 if at % 60 < 15 else 0.1) for at in range(120)]
    phases = phases_of(all_said, [(50.0, 60.0), (300.0, 60.0)], ("one",))
    assert [round(phase["classes"][0]["ate"], 6) for phase in phases] == [10.0, 10.0]
    tables = [{"name": "t", "within_bound": True}]
    run = {"phases": phases_of(all_said, [(50.0, 60.0)], ("one", "one")), "in_time": 1.0, "tables": tables}
    assert all(each["met"] for each in requirements(run | {"inversion": 0.5}, (30.0, 20.0)))
    assert [each["met"] for each in requirements(run | {"inversion": 1.5}, (5.0, 20.0))] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_the_page_has_all_figures(tmp_path: Path) -> None:
    all_said = [said(at, name) for at in range(60) for name in ("one", "two")]
    phases = phases_of(all_said, [(50.0, 60.0)], ("one", "two"))
    table = {"name": "t", "staleness": 5.04, "bound": None, "jobs": 3, "within_bound": True}
    run = {
        "policy": "rds-quota",
        "work": 1.0,
        "requests": 120,
        "phases": phases,
        "in_time": 1.0,
        "tables": [table],
    }
    run |= {"inversion": 0.0, "stolen": None}
    record = {"seconds": 60, "loads": [50.0], "deadline": 4.0, "rows": 1_000, "policies": [run]}
    page = write_live_page(record | {"requirements": requirements(run, (30.0, 20.0))}, tmp_path / "out")
    text = page.read_text(encoding="utf-8")
    assert "| 50 | one | 45 | 100.0 | 0.0 | 0.0 |" in text
    assert "- t: staleness 5.0 s, bound – s." in text
    assert "**not met**" not in text
    assert (tmp_path / "out" / "live.json").exists()


def test_requests_come_at_their_rates_and_by_their_shares() -> None:
    phases, shares = [(1_000.0, 2.0), (1_000.0, 6.0)], [("one", 0.25), ("two", 0.75)]
    due = poisson(phases, shares, [("SELECT 1", 1.0)], 2.0, seed=1)
    assert [each.at_s for each in due] == sorted(each.at_s for each in due)
    assert abs(sum(each.at_s < 1_000 for each in due) / 2_000 - 1) < 0.1
    assert abs(len(due) / 8_000 - 1) < 0.1
    assert abs(sum(each.class_name == "one" for each in due) / len(due) - 0.25) < 0.03
