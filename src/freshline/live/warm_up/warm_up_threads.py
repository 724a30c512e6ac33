"""The threads that warm Spark up, from before the search for files until every plan is warm."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from freshline.base.clock import Clock, clock
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.spark.loading.warm_up import WarmUp
from freshline.spark.session.session import use_group

_GROUP: Final = "warm-up"
_LOOK_EVERY_S: Final = 0.05
# How long the end of a run waits for its cancelled jobs.
_ENDING_S: Final = 10.0
_logger = logging.getLogger(__name__)


class WarmUpThreads:
    """Threads with a session each, like the tracks of updates.

    The first thread always goes on, because feeds wait for it. The others begin another plan only while there
    are as many idle tracks.
    """

    def __init__(
        self,
        warmth: WarmPlans,
        warm_up: WarmUp,
        session: SparkSession,
        folder: Path,
        at_once: int,
        now: Clock = clock,
    ) -> None:
        self._warmth = warmth
        self._warm_up = warm_up
        self._session = session
        self._folder = folder
        self._clock = now
        self.at_once = at_once
        self._idle: Callable[[], int] = lambda: at_once
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"warm-up-{number}", daemon=True)
            for number in range(at_once)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def mind(self, idle: Callable[[], int]) -> None:
        """From now on, tracks are at work; `idle` gives the number of idle ones."""
        self._idle = idle

    def wait(self, is_enough: Callable[[], bool]) -> None:
        """Waits until that is so or all plans are done, in short waits that a signal can interrupt."""
        while not is_enough() and any(thread.is_alive() for thread in self._threads):
            self._stop.wait(_LOOK_EVERY_S)

    def close(self, abandoned: Callable[[], bool]) -> None:
        """Ends the threads at once. If the run is abandoned, it does not wait: they fail when Spark ends."""
        self._stop.set()
        give_up_at = time.monotonic() + _ENDING_S
        while (
            any(thread.is_alive() for thread in self._threads)
            and not abandoned()
            and time.monotonic() < give_up_at
        ):
            with suppress(Py4JError, OSError):  # Spark may have ended
                self._session.sparkContext.cancelJobGroup(_GROUP)
            self._join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _join(self) -> None:
        for thread in self._threads:
            thread.join(_LOOK_EVERY_S)

    def _run(self, number: int) -> None:
        session: SparkSession | None = None
        while self._may_begin(number) and (plan := self._warmth.take()) is not None:
            try:
                session = session or self._new_session()
                self._warm_up.run(session, plan[0], lambda: not self._stop.is_set())
            # The thread's boundary. Made-up rows do not fit every query, and Spark may end: neither stops the
            # warm-up of other plans.
            except Exception as error:
                _logger.debug("not warmed up: %s: %s", plan[0], error)
                self._warmth.gave_up(plan[0])
            else:
                if not self._stop.is_set():
                    self._warmth.warmed(plan[0], self._clock())

    def _new_session(self) -> SparkSession:
        use_group(self._session, _GROUP, _GROUP, "warm-up")
        return self._session.newSession()

    def _may_begin(self, number: int) -> bool:
        """Waits until there is an idle track for this thread too; returns whether a plan is left."""
        while 0 < number >= self._idle() and self._warmth.progress() is not None:
            if self._stop.wait(_LOOK_EVERY_S):
                break
        return not self._stop.is_set()
