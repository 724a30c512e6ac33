"""`freshline experiment service-classes`, small: what it writes, and what it measures."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshline.cli.main import app
from freshline_lab.experiments.classes import service_classes
from freshline_lab.experiments.classes.service_measures import measures, step
from freshline_lab.experiments.classes.service_runs import ClassCourse, PeriodCounts

OF_CLASS = ["class", "ate", "ate_ci", "ate_steady", "admitted", "admitted_ci", "admitted_steady", "sdte"]
OF_CLASS += ["unanswered", "answered_steady", "overshoot", "settling"]


def test_it_writes_a_page_with_figures_and_says_all_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_classes, "LOADS_QUICK", (40, 100, 200))
    monkeypatch.setattr(service_classes, "SECONDS_QUICK", 10)
    arguments = ["experiment", "service-classes", "--quick", "--runs", "2", "--into", str(tmp_path), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code in (0, 1)
    record = json.loads(result.stdout)
    assert list(record) == ["loads", "esterr", "transient", "step"]
    assert [(at["load"], at["algorithm"]) for at in record["loads"]] == [
        (load, name) for load in (40, 100, 200) for name in ("rds-edf", "rds-hef", "rds-quota", "admit-all")
    ]
    assert list(record["loads"][0]) == ["load", "algorithm", "mwde", "mwde_ci", "classes"]
    assert [list(each) for each in record["loads"][0]["classes"]] == [OF_CLASS] * 4
    assert (record["esterr"], record["step"]) == ([], [])
    for at in record["transient"]:
        assert [list(each) for each in at["classes"]] == [["class", "ate", "admitted", "capacity"]] * 4
        assert {len(each["ate"]) for each in at["classes"]} == {2}
    assert {path.name for path in tmp_path.iterdir()} == {
        *("page.md", "results.json", "figure.png", "transient.png")
    }
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8")) == record


def course(ates: list[float], admitted: float = 1.0) -> ClassCourse:
    """A run in which a class's errors are these, of ten requests a period."""
    counts = [PeriodCounts(10, round(10 - 10 * admitted), 10, 1, 10 * ate, 10 * ate * ate) for ate in ates]
    return ClassCourse([counts] * 4, [[0.0] * len(ates)] * 4, [0.5] * len(ates))


def test_overshoot_and_settling_are_of_the_mean_course_and_not_of_who_is_rejected() -> None:
    first, second = course([0.3, 0.9, 0.5, 0.3, 0.3, 0.3]), course([0.3, 0.3, 0.3, 0.3, 0.3, 0.3])
    gold = measures([first, second])["classes"][0]
    assert gold["overshoot"] == pytest.approx(100)  # 0.6 where 0.3 is declared
    assert gold["settling"] == 20  # 0.6, 0.4 and 0.3 are above 1.15 times 0.3, and end with the fourth period
    assert (gold["ate_steady"], gold["unanswered"]) == (pytest.approx(30), pytest.approx(10))
    assert gold["ate_ci"] > 0
    assert step([first, second], at_s=5)[0]["settling"] == 15
    rejected = measures([course([0.9] * 6, admitted=0.0)])["classes"][0]
    assert (rejected["overshoot"], rejected["settling"], rejected["ate_ci"]) == (None, None, None)
