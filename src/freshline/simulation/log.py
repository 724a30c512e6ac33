"""The log of a run: what happened and what the kernel said to it, line by line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TextIO

from freshline.kernel.events import Event, Finished, Instruction


class EventLog:
    """Writes one JSON line an event and an instruction. The same run writes the same bytes."""

    def __init__(self, stream: TextIO, header: dict[str, Any]) -> None:
        self._stream = stream
        self._line(header)

    def write(self, now: int, events: Sequence[Event], instructions: Sequence[Instruction]) -> None:
        for event in events:
            if isinstance(event, Finished):
                self._line(
                    {
                        "at": now,
                        "event": "finished",
                        "table": event.job.task.name,
                        "job": event.job.number,
                        "freshness": event.freshness,
                    }
                )
            else:
                self._line({"at": now, "event": "arrived", "feed": event.feed, "file": list(event.file)})
        for instruction in instructions:
            job = instruction.job
            self._line(
                {
                    "at": now,
                    "instruction": "start",
                    "table": job.task.name,
                    "job": job.number,
                    "track": job.track,
                    "release": job.release,
                    "deadline": job.deadline,
                    "from": job.loaded_from,
                    "to": job.loaded_to,
                    "files": [file.name for file in job.files],
                }
            )

    def _line(self, record: dict[str, Any]) -> None:
        self._stream.write(json.dumps(record, separators=(",", ":")) + "\n")
