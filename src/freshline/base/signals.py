"""Handling of SIGINT and SIGTERM from the first line of a command on.

A command that is told to end unwinds: it closes what it has opened and exits with 128 plus the signal's
number. Once a warehouse runs, its command installs its own handlers and shuts down in order.
"""

from __future__ import annotations

import atexit
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)
_came: list[int] = []


class TerminationRequested(SystemExit):
    """This process received a signal to end."""


def listen() -> None:
    """From now on both signals end this process, wherever it is."""
    for number in _ENDING:
        signal.signal(number, _handle)
    atexit.register(ignore)


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
    for number in _ENDING:
        signal.signal(number, lambda came, _: waiting.append(came))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for came in waiting:
            signal.raise_signal(came)


def _handle(number: int, frame: FrameType | None) -> None:
    _came.append(number)
    check()
