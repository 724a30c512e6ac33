"""The kernel's journal: what it was told and what it said, call by call; enough to check it again.

The header says in which format it is and which kernel it was. Each line after it is one call of `handle`.
Played to a fresh kernel of the same plan, the same events must bring the same instructions: simulated runs
and runs on Spark are checked in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TextIO

from freshline.kernel.core.events import Event, Instruction, Record

# Changes whenever an older version's journal would be taken for something else.
FORMAT: Final = 6


class Journal:
    """Writes a header and then a JSON line for each call. The same run writes the same bytes."""

    def __init__(self, stream: TextIO, header: Record) -> None:
        self._stream = stream
        self._line({"journal": FORMAT, **header})

    def write(
        self, now: int, events: Sequence[Event], instructions: Sequence[Instruction], closing: bool = False
    ) -> None:
        record: Record = {"now": now}
        if closing:
            record["closing"] = True
        if events:
            record["events"] = [event.record() for event in events]
        if instructions:
            record["instructions"] = [instruction.record() for instruction in instructions]
        self._line(record)

    def restarted(self, now: int, found: Record) -> None:
        """Another kernel goes on from here, made of what was found."""
        self._line({"now": now, "restarted": found})

    def flush(self) -> None:
        self._stream.flush()

    def _line(self, record: Record) -> None:
        self._stream.write(json.dumps(record, separators=(",", ":")) + "\n")
