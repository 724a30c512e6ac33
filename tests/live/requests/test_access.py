"""With a local master only this machine can reach a run, and only its user can read its storage."""

import os
import signal
import stat
from pathlib import Path

import pytest

from freshline.definitions.load import load
from freshline.definitions.sections.nodes import is_local
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from patience import PATIENCE_US
from processes import Command, command, listening, spark_javas

pytestmark = pytest.mark.spark

PROJECT = """\
name: small
pools: {updates: {tracks: 1}}
feeds:
  packets: {path: landing, format: csv, schema: "ts timestamp, src string", timestamp: ts, period: 1s}
tables:
  packets: {feed: packets}
"""
# 127.0.0.1, as IPv4 has it and as IPv6 does, and IPv6's own.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
# Python's for its accumulators; Java's for Python, the driver and its blocks.
LISTENERS = 4
CONF = [f"--conf={key}" for key in ("spark.executor.memory=1g", "spark.ui.enabled=true", "spark.ui.port=0")]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "landing").mkdir()
    (tmp_path / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "landing" / "1.csv").write_text("ts,src\n2026-01-01T00:00:00Z,a\n", encoding="utf-8")
    return tmp_path


def is_loaded(project: Path) -> bool:
    return any((project / "warehouse/tables/packets/data").glob("*/*.parquet"))


def addresses(run: Command, project: Path) -> list[str]:
    run.wait_until(lambda: is_loaded(project))
    return listening(run.look())


def test_a_run_in_this_process_lets_nobody_in(project: Path, spark) -> None:
    warehouse = load(project / "freshline.yml")
    with Runner(warehouse, project, project / "warehouse", RunOptions(session=spark, drain=True)) as runner:
        found = listening([os.getpid(), *spark_javas(os.getpid())])
        runner.run(PATIENCE_US)
    assert len(found) >= LISTENERS
    assert set(found) <= LOOPBACK
    check_private(project / "warehouse")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("options", "at_least"),
    [
        pytest.param([], LISTENERS, id="local"),
        # The parts of a cluster on this machine, which are processes of their own, and web pages.
        pytest.param(["--master", "local-cluster[1,1,1024]", *CONF], 9, id="local-cluster"),
    ],
)
def test_a_run_on_this_machine_lets_nobody_in(project: Path, options: list[str], at_least: int) -> None:
    with command("run", "-p", str(project), "--cold", *options) as run:
        found = addresses(run, project)
        run.end(signal.SIGINT)
    assert len(found) >= at_least
    assert set(found) <= LOOPBACK
    check_private(project / "warehouse")


def check_private(storage: Path) -> None:
    seen = {path: path.stat().st_mode for path in [storage, *storage.rglob("*")]}
    assert {path.name for path in seen} >= {"status.json", "ledger.sqlite", "history.sqlite", "_delta_log"}
    assert any(path.suffix == ".parquet" for path in seen)
    assert {stat.S_IMODE(mode) for mode in seen.values() if stat.S_ISDIR(mode)} == {0o700}
    assert {stat.S_IMODE(mode) for mode in seen.values() if not stat.S_ISDIR(mode)} == {0o600}


def test_masters_of_this_machine_are_told_from_clusters() -> None:
    local = ["local", "local[2]", "local[*]", "local[2,4]", "local-cluster[2,1,1024]", None]
    assert all(is_local(master) for master in local)
    assert not any(is_local(master) for master in ["spark://localhost:7077", "yarn", "k8s://https://local"])
