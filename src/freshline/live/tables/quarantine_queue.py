"""Files on their way into quarantine: a file that cannot be moved now is moved later and blocks nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from freshline.base.clock import Clock, clock
from freshline.live.loop.failures import ATTEMPTS_MAX, FailureStreak
from freshline.live.loop.messages import FileRefused, Message
from freshline.live.loop.run_notes import RunNotes
from freshline.spark.errors import sentence
from freshline.storage.control.quarantine import Quarantine


@dataclass(slots=True)
class _Refusal:
    """A file to be quarantined, as it was at the decision."""

    feed: str
    name: str
    path: Path
    reason: str
    attempts: int  # to load it
    seen: tuple[int, int, int]
    trouble: FailureStreak = field(default_factory=FailureStreak)  # of moves into quarantine
    retry_at: int = 0


class QuarantineQueue:
    """Moves files into quarantine, for the file watch and for tracks."""

    def __init__(
        self,
        quarantine: Quarantine,
        notes: RunNotes,
        post: Callable[[Message], None],
        now: Clock = clock,
    ) -> None:
        self._quarantine = quarantine
        self._notes = notes
        self._post = post
        self._clock = now
        self._waiting: dict[tuple[str, str], _Refusal] = {}  # by feed and name
        self._lock = Lock()

    def put(self, feed: str, name: str, path: Path, reason: str, attempts: int) -> None:
        """Quarantines a file; if that fails, the file stays where it is and the move is retried later."""
        with self._lock:
            seen = _seen(path)
            # Its sender may have taken it back, or another table of the feed may have quarantined it.
            if seen is not None:
                self._post(FileRefused(feed, self._clock()))
                self._try(_Refusal(feed, name, path, reason, attempts, seen))

    def try_again(self) -> None:
        """Retries failed moves; a file that has changed since is left alone, because it is found again."""
        if not self._waiting:
            return
        with self._lock:
            now = self._clock()
            for refusal in [*self._waiting.values()]:
                if now >= refusal.retry_at:
                    if _seen(refusal.path) == refusal.seen:
                        self._try(refusal)
                    else:
                        del self._waiting[refusal.feed, refusal.name]

    def are_fresh(self) -> bool:
        """Whether some file has had few attempts only: a draining run waits for these."""
        with self._lock:
            return any(refusal.trouble.attempts < ATTEMPTS_MAX for refusal in self._waiting.values())

    def _try(self, refusal: _Refusal) -> None:
        feed, name = refusal.feed, refusal.name
        try:
            self._quarantine.put(feed, name, refusal.path, refusal.reason, refusal.attempts)
        except OSError as error:
            trouble, said = refusal.trouble, refusal.trouble.reason
            trouble.attempts += 1
            trouble.reason = sentence(error)
            refusal.retry_at = trouble.retry_at(self._clock())
            self._waiting[feed, name] = refusal
            if trouble.reason != said:
                why = f"it cannot be put into quarantine ({trouble.reason}), which is retried"
                note = f"{feed}: {name} is skipped: {why}; it is bad: {refusal.reason}"
                self._notes.note(self._clock(), note)
        else:
            self._waiting.pop((feed, name), None)
            self._notes.refused(feed, name, refusal.reason)


def _seen(path: Path) -> tuple[int, int, int] | None:
    """The identity of a file; None if it is gone or unreachable."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns
