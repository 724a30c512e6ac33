"""The threads that read questions and write answers. A thread that hangs is replaced."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar

# The number of threads of a class at a time.
_THREADS_OF_CLASS: Final = 2
# Spark's analysis of a statement cannot be stopped. A thread that takes longer goes on without its turn.
_TURN_MAX_S: Final = 2.0
# The number of threads of a class that may work without a turn. They share the cores with updates.
SLOW_OF_CLASS: Final = 4
_IDLE_MAX: Final = 16

_T = TypeVar("_T")
_Call = Callable[[], None]


class QuestionThreads:
    """Lends threads to the classes of questions, in the service's event loop.

    The threads are daemons: one that hangs does not keep the process from ending.
    """

    def __init__(self, turn_max_s: float = _TURN_MAX_S) -> None:
        self._turn_max_s = turn_max_s
        self._turns: dict[str, asyncio.Semaphore] = {}
        self._slow: Counter[str] = Counter()
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._idle = 0  # only the event loop writes it
        self._numbers = count()

    def is_full(self, name: str) -> bool:
        """Whether as many threads of a class hang as may."""
        return self._slow[name] >= SLOW_OF_CLASS

    async def in_turn(self, name: str, what: Callable[..., _T], *arguments: object) -> _T:
        """Runs a function in a thread, in the turn of its class. The caller may stop waiting at any time.

        A turn lasts until its thread is done, even if the client has disconnected, but not longer than a turn
        may last.
        """
        turns = self._turns.setdefault(name, asyncio.Semaphore(_THREADS_OF_CLASS))
        await turns.acquire()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[_T] = loop.create_future()
        is_slow = False

        def lose_turn() -> None:
            nonlocal is_slow
            if self.is_full(name):
                late = loop.call_later(self._turn_max_s, lose_turn)
                done.add_done_callback(lambda _: late.cancel())
                return
            is_slow = True
            self._slow[name] += 1
            turns.release()

        def finish(_: object) -> None:
            losing.cancel()
            if is_slow:
                self._slow[name] -= 1
            else:
                turns.release()

        losing = loop.call_later(self._turn_max_s, lose_turn)
        done.add_done_callback(finish)
        self._start(loop, done, partial(what, *arguments))
        return await asyncio.shield(done)

    def _start(
        self, loop: asyncio.AbstractEventLoop, done: asyncio.Future[Any], what: Callable[[], Any]
    ) -> None:
        def call() -> None:
            try:
                result, error = what(), None
            except Exception as raised:  # the thread's boundary: the waiting client gets it
                result, error = None, raised
            with suppress(RuntimeError):  # the service has ended meanwhile
                loop.call_soon_threadsafe(self._ended, done, result, error)

        self._calls.put(call)
        if self._idle:
            self._idle -= 1
        else:
            name = f"question-{next(self._numbers)}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _ended(self, done: asyncio.Future[Any], result: object, error: Exception | None) -> None:
        if self._idle < _IDLE_MAX:
            self._idle += 1
        else:
            self._calls.put(_end_thread)
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)
            done.exception()  # the client may have left: then no other asks for it

    def _serve(self) -> None:
        while (call := self._calls.get()) is not _end_thread:
            call()


def _end_thread() -> None:
    """The last call of a thread."""
