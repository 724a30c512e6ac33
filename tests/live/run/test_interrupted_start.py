"""Ctrl-C before a warehouse runs leaves nothing behind; and what a killed start left, the next one clears."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from cases import rest_in_soak
from freshline.definitions.load import load
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from patience import PATIENCE_US
from processes import Command, command

pytestmark = pytest.mark.spark

PROJECT = """\
name: small
pools: {updates: {tracks: 2}}
feeds:
  packets: {path: landing, format: csv, schema: "ts timestamp, src string, n int", timestamp: ts, period: 1s}
tables:
  packets: {feed: packets}
  traffic: {sql: "SELECT ts, src, sum(n) AS n FROM packets GROUP BY ts, src", period: 1s}
"""
INTERRUPT, TERMINATE = signal.SIGINT, signal.SIGTERM


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "landing").mkdir(parents=True)
    (folder / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    (folder / "landing" / "1.csv").write_text("ts,src,bytes\n2026-01-01T00:00:00Z,a,1\n", encoding="utf-8")
    return folder


def scratch(project: Path) -> list[str]:
    """What is in the storage's scratch folders."""
    folder = project / "warehouse" / "_freshline" / "scratch"
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def has_reached(moment: str, run: Command, project: Path) -> bool:
    """Moments of a start, one after the other."""
    if moment == "the first line":
        return run.hears(TERMINATE)
    if moment == "Java is started":
        return run.starts_java() or run.has_java()  # the script is one for a moment only
    if moment == "Java starts":
        return run.has_java()
    made = "/spark/blockmgr" if moment == "Spark starts" else "/warm-up"
    return any(made in path for path in scratch(project))


def is_released(project: Path) -> bool:
    leases = sorted((project / "warehouse" / "_freshline" / "lease").glob("*.json"))
    return not leases or json.loads(leases[-1].read_text("utf-8"))["released"]


@pytest.mark.parametrize(
    ("moment", "signals"),
    [
        ("the first line", [TERMINATE]),
        ("the first line", [INTERRUPT]),
        pytest.param("Java is started", [INTERRUPT], marks=pytest.mark.soak),
        ("Java starts", [INTERRUPT]),
        pytest.param("Java starts", [INTERRUPT, INTERRUPT], marks=pytest.mark.soak),
        pytest.param("Spark starts", [TERMINATE], marks=pytest.mark.soak),
        pytest.param("Spark warms up", [INTERRUPT], marks=pytest.mark.soak),
        pytest.param("Spark warms up", [INTERRUPT, INTERRUPT], marks=pytest.mark.soak),
    ],
)
def test_a_start_that_is_interrupted_leaves_nothing(
    project: Path, moment: str, signals: list[signal.Signals]
) -> None:
    with command("run", "-p", str(project), "--json") as run:
        run.wait_until(lambda: has_reached(moment, run, project))
        code, said = run.end(*signals)
        assert code == 128 + signals[0], said
        assert "Traceback" not in said
        assert run.left() == []
    assert scratch(project) == []
    assert is_released(project)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("signals", "codes"),
    [
        ([TERMINATE], {0, 1, 143}),  # with a summary, if there is time for one
        ([TERMINATE, TERMINATE], {0, 1, 143}),
        ([signal.SIGKILL], {-signal.SIGKILL}),
    ],
)
def test_a_run_whose_java_hangs_ends_with_it(
    project: Path, signals: list[signal.Signals], codes: set[int]
) -> None:
    with command("run", "-p", str(project), "--json", "--cold") as run:
        run.wait_until((project / "warehouse" / "_freshline" / "service.json").exists)
        (java,) = run.javas()
        os.kill(java, signal.SIGSTOP)  # as if it collected garbage for ever
        code, said = run.end(*signals)
        assert code in codes, said
        assert run.left() == []


@pytest.mark.parametrize(
    "arguments", rest_in_soak([["sql", "SELECT 1"], ["calibrate"]]), ids=lambda each: each[0]
)
def test_every_command_that_starts_spark_takes_it_with_it(project: Path, arguments: list[str]) -> None:
    with command(*arguments, "-p", str(project)) as begun:
        begun.wait_until(begun.has_java)
        code, said = begun.end(INTERRUPT)
        assert code == 130, said
        assert "Traceback" not in said
        assert begun.left() == []
    assert scratch(project) == []


@pytest.mark.soak
def test_a_rebuild_takes_its_spark_with_it(project: Path, spark) -> None:
    (project / "landing" / "2.csv").write_text("ts,src,n\n2026-01-01T00:00:00Z,a,1\n", encoding="utf-8")
    warehouse = load(project / "freshline.yml")
    with Runner(warehouse, project, project / "warehouse", RunOptions(session=spark, drain=True)) as runner:
        runner.run(PATIENCE_US)
    with command("rebuild", "traffic", "-p", str(project)) as begun:
        begun.wait_until(begun.has_java)
        assert begun.end(INTERRUPT)[0] == 130
        assert begun.left() == []
    assert is_released(project)


@pytest.mark.soak
def test_the_demonstration_takes_its_spark_with_it(tmp_path: Path) -> None:
    with command("demo", "--into", str(tmp_path / "demo")) as begun:
        begun.wait_until(begun.has_java)
        assert begun.end(TERMINATE)[0] == 143
        assert begun.left() == []


@pytest.mark.soak
def test_what_a_killed_start_left_is_cleared_by_the_next(project: Path, spark) -> None:
    with command("run", "-p", str(project), "--json") as run:
        run.wait_until(lambda: has_reached("Spark warms up", run, project))
        # Java too, at once: it would else tidy up after itself.
        for pid in reversed(run.look()):
            with suppress(ProcessLookupError):  # one that ends with the one before it
                os.kill(pid, signal.SIGKILL)
        run.process.wait()
        assert run.left() == []
    left = scratch(project)
    assert any("/warm-up" in path for path in left)
    assert any("/spark/blockmgr" in path for path in left)
    with Runner(
        load(project / "freshline.yml"), project, project / "warehouse", RunOptions(session=spark)
    ) as runner:
        assert scratch(project) == [runner.run_id, f"{runner.run_id}.json"]
    assert scratch(project) == []
