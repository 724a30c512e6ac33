"""Processes of nodes: started, started again, stopped, and never left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from freshline.base.processes import process_start
from freshline.live.nodes.supervisor import Supervisor
from node_process import __file__ as program
from node_process import command
from patience import PATIENCE_S


def supervisor(folder: Path, *nodes: str) -> tuple[Supervisor, list[str]]:
    said: list[str] = []
    # Its clock runs ahead, so that the test does not wait for back-offs.
    return Supervisor(
        nodes, lambda node: command(folder, node), said.append, lambda: 50 * time.monotonic()
    ), said


def starts(folder: Path, node: str) -> list[int]:
    path = folder / f"{node}.starts"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_node_that_dies_is_started_again_and_one_that_is_refused_is_not(tmp_path: Path) -> None:
    supervised, said = supervisor(tmp_path, "dies", "loses", "refused", "ends")
    assert supervised.run() == 2
    assert {node: len(starts(tmp_path, node)) for node in ("dies", "loses", "refused", "ends")} == {
        "dies": 3,
        "loses": 2,
        "refused": 1,
        "ends": 1,
    }
    assert sorted(said) == [
        "node dies was killed by signal 9: it restarts in 1 s",
        "node dies was killed by signal 9: it restarts in 2 s",
        "node loses has lost Spark or its lease: it restarts in 1 s",
        "node refused does not run: it was refused",
    ]


def test_all_nodes_are_told_to_end_and_none_is_started_again(tmp_path: Path) -> None:
    supervised, said = supervisor(tmp_path, "waits-1", "waits-2")

    def stop_when_ready() -> None:
        if len(list(tmp_path.glob("*.ready"))) == 2 and not stopped:
            stopped.append(True)
            supervised.stop()

    stopped: list[bool] = []
    assert supervised.run(stop_when_ready) == 0
    assert (len(starts(tmp_path, "waits-1")), len(starts(tmp_path, "waits-2")), said) == (1, 1, [])


def test_nodes_end_when_whoever_started_them_is_killed(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, program, str(tmp_path), "waits-1", "waits-2", "--"], stdin=subprocess.DEVNULL
    )
    until = time.monotonic() + PATIENCE_S
    try:
        while len(list(tmp_path.glob("*.ready"))) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        children = starts(tmp_path, "waits-1") + starts(tmp_path, "waits-2")
        assert len(children) == 2
    finally:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
    while any(process_start(pid) for pid in children) and time.monotonic() < until:
        time.sleep(0.02)
    assert [pid for pid in children if process_start(pid)] == []
