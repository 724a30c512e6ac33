"""How far a start is: in the status file, and on a terminal."""

import sys
from io import StringIO
from pathlib import Path

import pytest

from freshline.base.errors import DefinitionErrors
from freshline.cli.run import TellStart
from freshline.definitions.load import loads
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.live.run.start_up import StartUp
from freshline.live.status.status import Progress, WarehouseStatus

PROJECT = """\
name: small
pools: {updates: {tracks: 2}}
feeds:
  packets: {path: landing, format: csv, schema: "ts timestamp, n int", timestamp: ts, period: 1s}
tables:
  packets: {feed: packets}
  traffic: {sql: "SELECT ts, sum(n) AS n FROM packets GROUP BY ts", period: 1s}
"""


def test_each_step_is_written_as_the_status_of_the_run(tmp_path: Path) -> None:
    heard: list[Progress] = []
    start_up = StartUp("small", "run-7", tmp_path / "status.json", heard.append)
    start_up.open()
    for progress in (Progress("starting Spark"), Progress("opening tables", 1, 2)):
        start_up.say(progress)
        status = WarehouseStatus.read(tmp_path / "status.json")
        assert (status.run_id, status.starting, status.is_opening) == ("run-7", progress, True)
    start_up.say(Progress("opening tables", 1, 2))  # nothing new
    assert [str(progress) for progress in heard] == ["starting Spark", "opening tables, 1 of 2"]


@pytest.mark.parametrize("before", [None, "what the run before wrote"])
def test_a_start_that_comes_to_nothing_leaves_the_status_of_the_run_before(
    tmp_path: Path, before: str | None
) -> None:
    path = tmp_path / "status.json"
    if before is not None:
        path.write_text(before, encoding="utf-8")
    start_up = StartUp("small", "run-7", path)
    start_up.open()
    start_up.say(Progress("starting Spark"))
    start_up.close()
    assert (path.read_text("utf-8") if path.exists() else None) == before


def test_the_status_of_a_run_that_came_about_stays(tmp_path: Path) -> None:
    path = tmp_path / "status.json"
    start_up = StartUp("small", "run-7", path)
    start_up.open()
    start_up.say(Progress("starting Spark"))
    path.write_text("the run's own", encoding="utf-8")
    start_up.close()
    assert path.read_text("utf-8") == "the run's own"


def test_a_run_whose_tables_are_refused_leaves_the_status_of_the_run_before(tmp_path: Path, spark) -> None:
    (tmp_path / "landing").mkdir()
    heard: list[Progress] = []
    with Runner(
        loads(PROJECT), tmp_path, tmp_path / "warehouse", RunOptions(session=spark, on_start=heard.append)
    ) as runner:
        assert WarehouseStatus.read(runner.control.status).is_opening
        runner.run(1)
        assert not WarehouseStatus.read(runner.control.status).is_opening
    assert [str(progress) for progress in heard] == [
        "starting Spark",
        "opening tables, 0 of 2",
        "opening tables, 1 of 2",
        "opening tables, 2 of 2",
    ]
    before = runner.control.status.read_bytes()
    wrong = loads(PROJECT.replace("sum(n)", "sum(missing)"))
    with (
        pytest.raises(DefinitionErrors),
        Runner(wrong, tmp_path, tmp_path / "warehouse", RunOptions(session=spark)),
    ):
        pass
    assert runner.control.status.read_bytes() == before


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [Terminal(), StringIO()])
def test_a_terminal_is_told_in_one_line_and_a_file_in_a_line_for_each_activity(
    stream: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with TellStart() as tell:
        tell.say(Progress("starting Spark"))
        tell.say(Progress("opening tables", 1, 2))
        tell.say(Progress("opening tables", 2, 2))
        tell.over()
        assert stream.getvalue() == (
            "Starting Spark ...\nOpening tables, 1 of 2 ...\r\x1b[2KOpening tables, 2 of 2 ...\r\x1b[2K"
            if stream.isatty()
            else "Starting Spark ...\nOpening tables ...\n"
        )


def test_a_quiet_start_says_nothing_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with TellStart(quiet=True) as tell:
        tell.say(Progress("starting Spark"))
    assert not stream.getvalue()
