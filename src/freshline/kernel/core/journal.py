"""The kernel's journal: its events and instructions, call by call, so that a run can be checked again.

The header has the format and all that made the kernel. Each further line is one call of `handle`. A fresh
kernel of the same plan must give the same instructions for the same events, simulated or on Spark.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, TextIO

from freshline.kernel.core.events import Event, Instruction, Record

# Changes when this version would misread an older version's journal.
FORMAT: Final = 7


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
        """Records that a second kernel goes on from here, with the freshness that was found."""
        self._line({"now": now, "restarted": found})

    def flush(self) -> None:
        self._stream.flush()

    def _line(self, record: Record) -> None:
        self._stream.write(json.dumps(record, separators=(",", ":")) + "\n")
