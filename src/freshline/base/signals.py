"""SIGINT and SIGTERM, from a command's first line on.

A command that is told to end unwinds: what it has opened is closed, and it exits by 128 plus the signal's
number. Once a warehouse runs, its command has handlers of its own, and ends in order.
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
    """Somebody wants this process to end."""


def listen() -> None:
    """From here on both signals end this process, wherever it is."""
    for number in _ENDING:
        signal.signal(number, _handle)
    atexit.register(ignore)


def ignore() -> None:
    """All is closed: whoever is impatient now would only spoil the exit code."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def check() -> None:
    """Ends this process if it was told to and has not heard.

    Python drops an exception that a handler raises while an object is disposed of, and PySpark's are many.
    """
    if _came:
        raise TerminationRequested(128 + _came[0])


@contextmanager
def held() -> Iterator[None]:
    """Signals that come in here are heard at its end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # no handler runs in here
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
