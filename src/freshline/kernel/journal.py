"""The kernel's journal: what it was told and what it said, call by call; enough to check it again.

The header says which kernel it was. Each line after it is one call of `handle`. Played to a fresh kernel of
the same plan, the same events must bring the same instructions: simulated runs and runs on Spark are checked
in the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TextIO

from freshline.definitions.serial import from_record
from freshline.kernel.assembly import assemble
from freshline.kernel.events import Event, Failed, Instruction
from freshline.kernel.kernel import Kernel
from freshline.plan.make import make_plan, without_bounds
from freshline.recovery.events import Learned, LearnedCost
from freshline.recovery.terms import Terms
from freshline.tables.events import Arrived, DataFile, Finished
from freshline.tables.task import tables_of

Record = dict[str, Any]


class Journal:
    """Writes a header and then a JSON line for each call. The same run writes the same bytes."""

    def __init__(self, stream: TextIO, header: Record) -> None:
        self._stream = stream
        self._line(header)

    def write(
        self, now: int, events: Sequence[Event], instructions: Sequence[Instruction], closing: bool = False
    ) -> None:
        record: Record = {"now": now}
        if closing:
            record["closing"] = True
        if events:
            record["events"] = [event_record(event) for event in events]
        if instructions:
            record["instructions"] = [instruction_record(instruction) for instruction in instructions]
        self._line(record)

    def flush(self) -> None:
        self._stream.flush()

    def _line(self, record: Record) -> None:
        self._stream.write(json.dumps(record, separators=(",", ":")) + "\n")


def event_record(event: Event) -> Record:
    return event.record()


def _cost(record: Record) -> LearnedCost:
    terms = record["terms"]
    if terms is not None:
        exact = {"weight": Fraction(terms["weight"]), "source_bounds_us": tuple(terms["source_bounds_us"])}
        terms = Terms(**{**terms, **exact})
    return LearnedCost(**{**record, "terms": terms})


def instruction_record(instruction: Instruction) -> Record:
    return instruction.record()


def kernel_of(header: Record) -> Kernel:
    """The kernel of the run that a journal's header tells of, as it was when the run began."""
    plan = make_plan(from_record(header["warehouse"]))
    plan = without_bounds(plan, frozenset(header.get("unknown", ())))
    return assemble(plan, header["now"], header["freshness"])


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replayed kernel said something else."""

    call: int
    now: int
    journal: list[Record]
    replayed: list[Record]
    reason: str | None = None  # why the journal's events could not even be told to it


def _before_jumps(start: Record) -> Record:
    """As journals had it when no job went further than it loads."""
    return {key: value for key, value in start.items() if key != "jump_to"}


class _NotRunning(Exception):  # noqa: N818  (it is what was found)
    """A journal ends a job that the kernel does not run: the line of its start is missing."""


def replay(kernel: Kernel, records: Iterable[Record]) -> tuple[int, Difference | None]:
    """Plays a journal's calls to a fresh kernel: how many calls agreed, and the first that did not.

    A full disk can cost lines of a journal. A line that was cut short is to be given as an empty record.
    """
    tasks = {task.name: task for task in tables_of(kernel)}

    def event(record: Record) -> Event:
        if "learned" in record:
            return Learned({table: _cost(cost) for table, cost in record["learned"].items()})
        if "arrived" in record:
            tables = record.get("tables")
            file = DataFile(record["timestamp"], record["file"])
            return Arrived(record["arrived"], file, None if tables is None else frozenset(tables))
        name = record["finished"] if "finished" in record else record["failed"]
        job = tasks[name].job
        if job is None or job.number != record["job"]:
            raise _NotRunning(f"it ends job {record['job']} of {name}, which is not running")
        return Finished(job, record["freshness"]) if "finished" in record else Failed(job, record["retry_at"])

    calls = 0
    for record in records:
        if "now" not in record:
            return calls, Difference(calls + 1, kernel.now, [], [], "its line is cut short")
        written = record.get("instructions", [])
        try:
            events = [event(entry) for entry in record.get("events", ())]
        except _NotRunning as error:
            return calls, Difference(calls + 1, record["now"], written, [], str(error))
        instructions = kernel.handle(record["now"], events, record.get("closing", False))
        said = [instruction_record(instruction) for instruction in instructions]
        if said != written and [_before_jumps(start) for start in said] != written:
            return calls, Difference(calls + 1, record["now"], written, said)
        calls += 1
    return calls, None
