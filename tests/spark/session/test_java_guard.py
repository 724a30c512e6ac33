"""The guard of Spark's Java process, here with another process in its place."""

import subprocess
import sys

from freshline.base.processes import process_start
from freshline.spark.session import java
from patience import PATIENCE_S, wait_until

# It starts what is guarded, and the guard, and is killed.
PARENT = """\
import os, signal, subprocess
from freshline.spark.session.java import _start_guard
guarded = subprocess.Popen(["sleep", "1000"], start_new_session=True)
guarded.send_signal(signal.SIGSTOP)  # it does nothing by itself any more
_start_guard(guarded.pid)
print(guarded.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_hangs_ends_when_the_one_that_started_it_is_killed() -> None:
    command = [sys.executable, "-c", PARENT]
    said = subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE_S)
    guarded = int(said.stdout)
    wait_until(lambda: process_start(guarded) is None)


def test_a_guard_ends_with_what_it_guards() -> None:
    guarded = subprocess.Popen(["sleep", "1000"])
    java._start_guard(guarded.pid)
    guard = java._guards.pop()  # the others guard the Spark that other tests use
    guarded.kill()
    guarded.wait()
    assert guard.stdin is not None
    guard.stdin.close()
    assert guard.wait(PATIENCE_S) == 0
