"""The live driver: what happens is told to the kernel, and what it says is done."""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from freshline.definitions.duration import SECOND
from freshline.kernel.events import Event
from freshline.kernel.journal import Journal
from freshline.kernel.kernel import Kernel
from freshline.live.clock import Clock, clock
from freshline.live.tracks import Tracks
from freshline.tables.events import Arrived, DataFile
from freshline.tables.update import Update

_TICK_US = SECOND // 2
# Far more than ever wait: a full queue only slows discovery down.
_MESSAGES_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Landed:
    """A data file was found, and some tables have not loaded it yet."""

    feed: str
    file: DataFile
    tables: frozenset[str]
    arrival: int
    waited: bool = False  # it was there when the run began


@dataclass(frozen=True, slots=True)
class Ended:
    """A job ended, with what it did or with an exception."""

    job: Update
    outcome: object
    at: int


class Judge(Protocol):
    """Makes events of ends, and hears of everything else: bookkeeping that the kernel need not know."""

    def landed(self, landed: Landed) -> None: ...

    def judge(self, ended: Ended, now: int) -> Event: ...

    def tick(self, now: int, kernel: Kernel) -> None: ...


class LiveDriver:
    """One loop, one thread: it alone talks to the kernel. Tracks and discovery post messages to it."""

    def __init__(
        self,
        kernel: Kernel,
        judge: Judge,
        tracks: Callable[[Callable[[Update, object], None]], Tracks],
        journal: Journal,
        now: Clock = clock,
    ) -> None:
        self.kernel = kernel
        self._judge = judge
        self._journal = journal
        self._clock = now
        self._messages: queue.Queue[Landed | Ended] = queue.Queue(_MESSAGES_MAX)
        self._told: list[Event] = []
        self._tracks = tracks(self._job_ended)
        self.stopping = False

    def post(self, landed: Landed) -> None:
        """Called by the thread that looks for files."""
        self._messages.put(landed)

    def tell(self, event: Event) -> None:
        """What was found out at a tick: the kernel hears of it next. For the driver's own thread only."""
        self._told.append(event)

    def stop(self) -> None:
        """Starts nothing more; the loop ends at the next tick.

        Safe to call from anywhere. A message would be heard sooner, but a signal's handler may run while its
        own thread holds the queue's lock.
        """
        self.stopping = True

    def abandon(self) -> None:
        """Jobs that run are not waited for: what they have not committed is as if they had never begun."""
        self._tracks.abandon()

    def run(self, until: int | None = None, grace_s: float = 20.0) -> bool:
        """Runs until stopped or that instant; then lets running jobs end. Whether all of them did."""
        tick_at = self._clock()
        while not self.stopping and (until is None or self._clock() < until):
            wake_at = min(self.kernel.wake_at, tick_at, until or tick_at)
            messages = self._collect(0 if self._told else max(0, wake_at - self._clock()))
            self._step(messages, closing=self.stopping)
            now = self._clock()
            if now >= tick_at:
                self._judge.tick(now, self.kernel)
                with suppress(OSError):  # a full disk: what could not be written is tried again
                    self._journal.flush()
                tick_at = now + _TICK_US
        return self._close(grace_s)

    def _step(self, messages: Sequence[Landed | Ended], closing: bool = False) -> None:
        now = max(self.kernel.now, self._clock())  # a clock that is set back does not turn time
        if not messages and not self._told and (closing or now < self.kernel.wake_at):
            return
        events = [*(self._event(message, now) for message in messages), *self._told]
        self._told.clear()
        instructions = self.kernel.handle(now, events, closing)
        with suppress(OSError):  # a full disk costs lines of the log, which a replay finds missing
            self._journal.write(now, events, instructions, closing)
        for instruction in instructions:
            job = instruction.job
            assert isinstance(job, Update)  # the one kind of job that there is a worker for
            self._tracks.start(job)

    def _event(self, message: Landed | Ended, now: int) -> Event:
        if isinstance(message, Landed):
            self._judge.landed(message)
            return Arrived(message.feed, message.file, message.tables)
        return self._judge.judge(message, now)

    def _collect(self, timeout_us: int) -> list[Landed | Ended]:
        """Waits for a message, then takes all that are there."""
        messages: list[Landed | Ended] = []
        try:
            message = (
                self._messages.get(timeout=timeout_us / SECOND) if timeout_us else self._messages.get_nowait()
            )
            while True:
                messages.append(message)
                message = self._messages.get_nowait()
        except queue.Empty:
            return messages

    def _job_ended(self, job: Update, outcome: object) -> None:
        self._messages.put(Ended(job, outcome, self._clock()))

    def _close(self, grace_s: float) -> bool:
        """Jobs that run are let end, and the kernel hears of it; nothing new is started."""
        self.stopping = True
        everything_ended = self._tracks.close(grace_s)
        self._step(self._collect(0), closing=True)
        self._judge.tick(max(self.kernel.now, self._clock()), self.kernel)
        with suppress(OSError):
            self._journal.flush()
        return everything_ended
