"""A journal played to a fresh kernel of the same plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from freshline.assembly.assemble import assemble
from freshline.definitions.serial import from_record
from freshline.kernel.events import Event, Failed, Record
from freshline.kernel.kernel import Kernel, NotRunning
from freshline.plan.make import make_plan, without_bounds
from freshline.plan.plan import Plan
from freshline.recovery.events import Learned
from freshline.tables.events import Arrived, Finished
from freshline.tables.membership import Added, Removed

# By the first word of its record: an event as a kernel hears it again.
_EVENTS: dict[str, Callable[[Record, Kernel], Event]] = {
    "finished": Finished.from_record,
    "failed": Failed.from_record,
    "arrived": Arrived.from_record,
    "learned": Learned.from_record,
    "added": Added.from_record,
    "removed": Removed.from_record,
}


def kernel_of(header: Record) -> Kernel:
    """The kernel of the run that a journal's header tells of, as it was when the run began."""
    return assemble(_plan_of(header), header["now"], header["freshness"])


def _plan_of(header: Record) -> Plan:
    plan = make_plan(from_record(header["warehouse"]))
    return without_bounds(plan, frozenset(header.get("unknown", ())))


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


def _event(record: Record, kernel: Kernel) -> Event:
    return _EVENTS[next(iter(record))](record, kernel)


def replay(
    kernel: Kernel, records: Iterable[Record], header: Record | None = None
) -> tuple[int, Difference | None]:
    """Plays a journal's calls to a fresh kernel: how many calls agreed, and the first that did not.

    Where a simulated runner crashed another kernel goes on, made by the journal's header.
    A full disk can cost lines of a journal. A line that was cut short is to be given as an empty record.
    """
    calls = 0
    for record in records:
        if "now" not in record:
            return calls, Difference(calls + 1, kernel.now, [], [], "its line is cut short")
        if "restarted" in record:
            assert header is not None, "the runner crashed, and nobody says what it ran"
            kernel = assemble(_plan_of(header), record["now"], record["restarted"], live=False)
            calls += 1
            continue
        written = record.get("instructions", [])
        try:
            events = [_event(entry, kernel) for entry in record.get("events", ())]
        except NotRunning as error:
            return calls, Difference(calls + 1, record["now"], written, [], str(error))
        instructions = kernel.handle(record["now"], events, record.get("closing", False))
        said = [instruction.record() for instruction in instructions]
        if said != written and [_before_jumps(start) for start in said] != written:
            return calls, Difference(calls + 1, record["now"], written, said)
        calls += 1
    return calls, None
