"""How a run is to end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class RunEnd:
    """Why a run stops, and what is waited for then.

    Any thread may say so, and a signal's handler: each field is written whole, and nothing takes a lock.
    """

    because: str | None = None
    lost: bool = False  # it had to stop: somebody else has the storage, or Spark is gone
    abandoned: bool = False  # nobody waits for jobs, nor for housekeeping
    interrupted: bool = False  # by a signal, perhaps while it was being opened: not even Spark is waited for
