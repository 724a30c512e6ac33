"""A warehouse on a real Spark cluster, of which a part is lost."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
from deltalake import DeltaTable

from freshline.definitions.load import load
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.testing.network import Generator
from freshline_lab.campaigns.kills.kills import SPECS, report, write_project
from patience import PATIENCE_S, PATIENCE_US

SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
TABLES = (*(spec.name for spec in SPECS), "traffic")


@contextmanager
def process(command: list[str], output: Path) -> Iterator[subprocess.Popen]:
    """A process and its children, which end with the block."""
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with output.open("w") as stream:
        started = subprocess.Popen(
            command, stdout=stream, stderr=stream, env=environment, start_new_session=True
        )
    try:
        yield started
    finally:
        if started.poll() is None:
            kill(started)


def kill(started: subprocess.Popen) -> None:
    os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def spark_class(name: str, *arguments: str) -> list[str]:
    return [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments]


def free_port() -> int:
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return one.getsockname()[1]


def wait_for(what: Callable[[], bool], alive: subprocess.Popen, output: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        said = output.read_text(encoding="utf-8")[-2000:]
        assert alive.poll() is None, f"it ended: {said}"
        assert time.monotonic() < deadline, f"it takes too long: {said}"
        time.sleep(0.3)


def updates(storage: Path) -> dict[str, int]:
    """How many have been committed, by table."""
    paths = {name: storage / "tables" / name for name in TABLES}
    return {
        name: DeltaTable(path).version() if DeltaTable.is_deltatable(str(path)) else 0
        for name, path in paths.items()
    }


@contextmanager
def sending(generator: Generator) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=generator.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(10)


@pytest.mark.soak
def test_a_worker_that_is_lost_costs_no_row_and_does_not_stop_the_updates(tmp_path, spark):
    project, storage, output = write_project(tmp_path / "project"), tmp_path / "project/warehouse", tmp_path
    url = f"spark://{LOOPBACK}:{free_port()}"
    master = ["--host", LOOPBACK, "--port", url.rpartition(":")[2], "--webui-port", "0"]
    worker = ["--host", LOOPBACK, "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir"]
    run = [sys.executable, "-m", "freshline", "run", "-p", str(project), "--master", url, "--for", "2h"]
    conf = ["--conf", f"spark.driver.host={LOOPBACK}", "--conf", "spark.executor.memory=512m"]
    log = output / "run.log"
    with (
        process(spark_class("master.Master", *master), output / "master.log") as leader,
        process(spark_class("worker.Worker", *worker, str(tmp_path / "1"), url), output / "1.log") as first,
        process(spark_class("worker.Worker", *worker, str(tmp_path / "2"), url), output / "2.log") as second,
    ):
        for name, each in (("1.log", first), ("2.log", second)):
            path = output / name
            wait_for(lambda path=path: "Successfully registered" in path.read_text("utf-8"), each, path)
        with process([*run, *conf], log) as runner:
            wait_for((storage / "_freshline" / "status.json").exists, runner, log)
            generator = Generator(SPECS, tmp_path / "project/landing", 4, time.time_ns() // 1_000 - 2_000_000)
            with sending(generator):
                wait_for(lambda: min(updates(storage).values()) >= 2, runner, log)
                kill(first)
                before = updates(storage)
                wait_for(
                    lambda: all(updates(storage)[name] >= before[name] + 2 for name in TABLES), runner, log
                )
            written_until = time.time_ns() // 1_000
            generator.due(written_until)
            os.kill(runner.pid, signal.SIGINT)
            runner.wait(60)
        assert leader.poll() is None
        assert second.poll() is None
    # What it did not get to is loaded here.
    with Runner(load(project), project.parent, storage, RunOptions(session=spark, drain=True)) as here:
        here.run(PATIENCE_US)
    assert here.stopped_because == "nothing is left to load"
    found = report(storage, generator, written_until, kills=1)
    assert found.exact, found
    assert all(found.rows.values()), found
