"""Handling of SIGINT and SIGTERM from the first line of a command on.

A command that is told to end unwinds: it closes what it has opened and exits with 128 plus the signal's
number. Once a warehouse runs, its command installs its own handlers and shuts down in order.

A process that was told to end does end: if it is not done in time, whatever it waits for, a thread ends it.
"""

from __future__ import annotations

import atexit
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)
# How long a process may take to end after the first signal, and after the second.
_ENDS_WITHIN_S: Final = (9.5, 1.5)
_came: list[int] = []
# A handler may put into it at any moment, also while its own thread does.
_told: queue.SimpleQueue[int] = queue.SimpleQueue()
_noted: list[int] = []  # signals that were held, and that their handlers get once more
_last_acts: list[Callable[[], None]] = []


class TerminationRequested(SystemExit):
    """This process received a signal to end."""


def listen() -> None:
    """From now on both signals end this process, wherever it is."""
    for number in _ENDING:
        signal.signal(number, _handle)
    atexit.register(ignore)
    threading.Thread(target=_end_in_time, name="last-end", daemon=True).start()


def told(number: int) -> None:
    """Takes note of a signal to end, in its handler: from now on the time of this process is limited."""
    if number in _noted:
        _noted.remove(number)
    else:
        _told.put(number)


def before_a_forced_end(act: Callable[[], None]) -> None:
    """Has a function called before this process is ended because it does not end by itself."""
    _last_acts.append(act)


def ignore() -> None:
    """Ignores both signals: everything is closed, and another signal would only change the exit code."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def check() -> None:
    """Ends this process if it received a signal but the exception was lost.

    Python drops an exception that a handler raises in a finalizer, and PySpark has many finalizers.
    """
    if _came:
        raise TerminationRequested(128 + _came[0])


@contextmanager
def held() -> Iterator[None]:
    """Delays signals until the end of this block."""
    if threading.current_thread() is not threading.main_thread():
        yield  # handlers run only in the main thread
        return
    waiting: list[int] = []
    before = {number: signal.getsignal(number) for number in _ENDING}

    def hold(number: int, frame: FrameType | None) -> None:
        told(number)
        waiting.append(number)

    for number in _ENDING:
        signal.signal(number, hold)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for came in waiting:
            _noted.append(came)
            signal.raise_signal(came)


def _handle(number: int, frame: FrameType | None) -> None:
    told(number)
    _came.append(number)
    check()


def _end_in_time() -> None:
    number = _told.get()
    first_s, second_s = _ENDS_WITHIN_S
    end_at = time.monotonic() + first_s
    while (left_s := end_at - time.monotonic()) > 0:
        try:
            _told.get(timeout=left_s)
        except queue.Empty:
            break
        end_at = min(end_at, time.monotonic() + second_s)
    for act in _last_acts:
        act()
    print("Ended at once: something did not end in time.", file=sys.stderr, flush=True)
    os._exit(128 + number)
