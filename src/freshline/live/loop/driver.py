"""The live driver: it passes events to the kernel and carries out the kernel's instructions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from freshline.base.clock import Clock, clock
from freshline.base.duration import SECOND
from freshline.kernel.core.events import Cancel, Event, Instruction, Pause, Start
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.messages import Inbox, Message, MessageObserver
from freshline.live.loop.tracks import Tracks

_TICK_US = SECOND // 2


class LoopHooks:
    """The calls of a loop besides the kernel, in the loop's thread. By default each does nothing."""

    def tick(self, now: int, kernel: Kernel) -> None:
        """The loop calls it twice a second, and once more when all jobs have ended."""

    def look(self, now: int) -> None:
        """The loop calls it before each call of the kernel, for events that fall due at a certain instant."""

    def carry_out(self, instruction: Instruction) -> None:
        """Carries out instructions other than starting, pausing and cancelling jobs."""

    def let_go(self) -> None:
        """The loop starts nothing more and waits for running jobs next."""


class LiveDriver:
    """One loop in one thread: only it calls the kernel. Tracks and discovery post messages to it."""

    def __init__(
        self,
        kernel: Kernel,
        inbox: Inbox,
        tracks: Tracks,
        journal: Journal,
        observer: MessageObserver,
        hooks: LoopHooks,
        now: Clock = clock,
    ) -> None:
        self.kernel = kernel
        self._inbox = inbox
        self._tracks = tracks
        self._journal = journal
        self._observer = observer
        self._hooks = hooks
        self._clock = now
        self._told: list[Event] = []
        self.stopping = False

    def tell(self, event: Event) -> None:
        """Passes an event to the kernel's next call. Only the driver's thread may call it."""
        self._told.append(event)

    def stop(self) -> None:
        """Starts nothing more; the loop ends at the next tick.

        Any thread may call it. A message would be quicker, but a signal's handler may run while its own
        thread holds the queue's lock.
        """
        self.stopping = True

    def abandon(self) -> None:
        """Does not wait for running jobs: without a commit they have no effect."""
        self._tracks.abandon()

    def run(self, until: int | None = None, grace_s: float = 20.0) -> bool:
        """Runs until stopped or until that instant, then waits for jobs; returns whether all have ended."""
        tick_at = self._clock()
        while not self.stopping and (until is None or self._clock() < until):
            wake_at = min(self.kernel.wake_at, tick_at, until or tick_at)
            messages = self._inbox.collect(0 if self._told else max(0, wake_at - self._clock()))
            self._step(messages, closing=self.stopping)
            now = self._clock()
            if now >= tick_at:
                self._hooks.tick(now, self.kernel)
                with suppress(OSError):  # a full disk: the next tick writes again
                    self._journal.flush()
                tick_at = now + _TICK_US
        return self._close(grace_s)

    def _step(self, messages: Sequence[Message], closing: bool = False) -> None:
        now = max(self.kernel.now, self._clock())  # time does not go back with the clock
        made = [message.event(self._observer, now) for message in messages]
        if not closing:
            self._hooks.look(now)
        events = [*(event for event in made if event is not None), *self._told]
        self._told.clear()
        if not events and (closing or now < self.kernel.wake_at):
            return
        instructions = self.kernel.handle(now, events, closing)
        with suppress(OSError):  # a full disk loses lines of the journal, and a replay reports that
            self._journal.write(now, events, instructions, closing)
        for instruction in instructions:
            self._do(instruction)

    def _do(self, instruction: Instruction) -> None:
        if isinstance(instruction, Start):
            self._tracks.start(instruction.job)
        elif isinstance(instruction, Pause):
            self._tracks.pause(instruction.job)
        elif isinstance(instruction, Cancel):
            self._tracks.cancel(instruction.job)
        else:
            self._hooks.carry_out(instruction)

    def _close(self, grace_s: float) -> bool:
        """Waits for running jobs and passes their ends to the kernel; starts nothing new."""
        self.stopping = True
        self._hooks.let_go()
        everything_ended = self._tracks.close(grace_s)
        self._step(self._inbox.collect(0), closing=True)
        self._hooks.tick(max(self.kernel.now, self._clock()), self.kernel)
        with suppress(OSError):
            self._journal.flush()
        return everything_ended
