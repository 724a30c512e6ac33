"""A process that is told to end does end, whatever it waits for."""

import signal
import subprocess
import sys

import pytest

from patience import PATIENCE_S

PROGRAM = """\
import signal, sys, threading, time
from freshline.base import signals
signals._ENDS_WITHIN_S = {within}
signals.listen()
signals.before_a_forced_end(lambda: print("last act", flush=True))
{then}
"""
HANGS = """\
def stay(number, frame):
    signals.told(number)
for each in (signal.SIGINT, signal.SIGTERM):
    signal.signal(each, stay)
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""
HOLDS = """\
with signals.held():
    print("ready", flush=True)
    while True:
        time.sleep(0.1)
"""
UNWINDS = """\
try:
    with signals.held():
        print("ready", flush=True)
        time.sleep(1)
finally:
    time.sleep(0.5)  # a held signal counts once
    print("closed", flush=True)
"""


def ended(then: str, within: tuple[float, float], *numbers: signal.Signals) -> tuple[int, str]:
    program = PROGRAM.format(then=then, within=within)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for number in numbers:
        process.send_signal(number)
    said = process.communicate(timeout=PATIENCE_S)[0]
    return process.returncode, said


@pytest.mark.parametrize("then", [HANGS, HOLDS])
def test_one_signal_ends_a_process_that_does_not_end_by_itself(then: str) -> None:
    assert ended(then, (0.5, 0.2), signal.SIGTERM) == (143, "last act\n")


def test_a_second_signal_ends_it_sooner() -> None:
    assert ended(HANGS, (10 * PATIENCE_S, 0.2), signal.SIGINT, signal.SIGTERM) == (130, "last act\n")


def test_a_process_that_ends_in_time_is_left_alone() -> None:
    assert ended(UNWINDS, (10 * PATIENCE_S, 0.0), signal.SIGTERM) == (143, "closed\n")
