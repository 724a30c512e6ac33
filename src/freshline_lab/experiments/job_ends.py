"""Ends of live jobs, for experiments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from freshline.kernel.core.events import Event
from freshline.live.loop.messages import JobEnded


@contextmanager
def heard_ends(judge: type[Any], hear: Callable[[JobEnded], None]) -> Iterator[None]:
    """Calls `hear` with each end that a judge of that class judges, in the driver's thread."""
    judged = judge.judge

    def judging(self: Any, ended: JobEnded, now: int) -> Event:
        hear(ended)
        event: Event = judged(self, ended, now)
        return event

    with patch.object(judge, "judge", judging):
        yield
