"""`freshline analyze` as its user reads it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from freshline.base.errors import InputError
from freshline.cli.main import app


def lines(file: Path, tracks: int, *tasks: dict[str, Any]) -> list[str]:
    file.write_text(json.dumps({"tracks": tracks, "tasks": tasks}), encoding="utf-8")
    result = CliRunner().invoke(app, ["analyze", str(file)])
    assert result.exit_code == 0
    return [" ".join(line.split()) for line in result.stdout.splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tasks.json"


def test_the_text_has_verdicts_x_and_a_row_for_each_task(file: Path) -> None:
    assert lines(
        file, 1, {"name": "a", "cost": 26, "period": 70}, {"name": "b", "cost": 62, "period": 100}
    ) == [
        "Utilisation 0.9914 on 1 track.",
        "Rate monotonic, preemptive: not schedulable.",
        "EDF, non-preemptive, on one track: not schedulable.",
        "Global EDF, non-preemptive (NP-GEDF): tardiness of at most the cost + x, x = 36.",
        "task RM response NP-GEDF tardiness ≤ GEDF tardiness ≤ (Devi–Anderson) "
        "GEDF response ≤ (compliant vector)",
        "a 26 62 0 69.4",
        "b 118 98 0 99.4",
    ]


def test_the_text_says_why_a_column_is_missing(file: Path) -> None:
    assert lines(file, 2, {"name": "a", "cost": 5, "period": 4}, {"name": "b", "cost": 1, "period": 10}) == [
        "Utilisation 1.3500 on 2 tracks.",
        "Rate monotonic, preemptive: for one track only.",
        "EDF, non-preemptive, on one track: for one track only.",
        "Global EDF, non-preemptive (NP-GEDF): unbounded: the cost of 'a' is above its period.",
        "Global EDF, preemptive (GEDF): unbounded: the cost of 'a' is above its period.",
    ]


def test_the_text_says_why_a_response_is_missing_and_that_u_is_just_above_the_tracks(file: Path) -> None:
    shown = lines(
        file, 1, {"name": "a", "cost": 1, "period": 2}, {"name": "b", "cost": "1.000000000002", "period": 2}
    )
    assert shown[0] == "Utilisation just above 1 on 1 track."
    assert shown[-1] == (
        "b: its RM response is unbounded: the tasks of its priority and above need more than one track."
    )


def test_an_error_names_the_file(file: Path) -> None:
    file.write_text('{"tracks": 0, "tasks": []}', encoding="utf-8")
    result = CliRunner().invoke(app, ["analyze", str(file)])
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == (
        f"{file}: tracks is 0. Give the number of tracks, a whole number from 1 up."
    )
