"""The progress of a run as plain lines on standard error, where there is no terminal."""

from __future__ import annotations

import sys
from typing import Final

from freshline.base.duration import SECOND
from freshline.base.instants import utc
from freshline.base.printable import printable
from freshline.live import kinds_of_work
from freshline.live.status.status import WarehouseStatus

_EVERY_US: Final = 10 * SECOND
_MESSAGES_MAX: Final = 5


class PlainProgress:
    """Prints a line for the first status and for one in ten seconds, if it has changed, and new messages."""

    def __init__(self) -> None:
        self._next_us = 0
        self._last = ""
        self._told: frozenset[str] = frozenset()

    def hear(self, status: WarehouseStatus) -> None:
        if status.at_us < self._next_us or status.is_opening:
            return
        self._next_us = status.at_us + _EVERY_US
        messages = [each for each in status.broken_assumptions if each not in self._told]
        self._told = frozenset(status.broken_assumptions)
        line = _line(status)
        if line != self._last:
            self._say(status, line)
            self._last = line
        for message in messages[-_MESSAGES_MAX:]:
            self._say(status, message)

    def _say(self, status: WarehouseStatus, text: str) -> None:
        print(
            f"{utc(status.at_us):%Y-%m-%dT%H:%M:%SZ} {printable(f'{status.name}: {text}')}",
            file=sys.stderr,
            flush=True,
        )


def _line(status: WarehouseStatus) -> str:
    briefs = [section.brief(rows) for section in kinds_of_work.sections() if (rows := status.rows(section))]
    parts = [each for each in briefs if each]
    if status.starting is not None:
        parts.append(str(status.starting))
    if status.quarantined:
        parts.append(f"{status.quarantined} in quarantine")
    return "; ".join(parts) or "nothing to load"
