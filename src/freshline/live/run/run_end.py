"""The end of a run: its reason and whether to wait for jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RunEnd:
    """Why a run stops, and whether to wait for its jobs.

    Any thread and a signal's handler may write it: a field is written as a whole, without a lock.
    """

    because: str | None = None
    lost: bool = False  # it had to stop: another runner has the storage, or Spark has ended
    abandoned: bool = False  # it waits neither for jobs nor for housekeeping
    interrupted: bool = False  # by a signal, perhaps during the start: it does not even wait for Spark
    signals: int = 0  # how many came while it ran: its time is limited (`base.signals`)
