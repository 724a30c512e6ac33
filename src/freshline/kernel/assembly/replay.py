"""Replays a journal on a fresh kernel of the same plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from freshline.base.errors import InputError
from freshline.base.names import cut
from freshline.definitions.serial import from_record
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.kinds import KINDS
from freshline.kernel.assembly.node_kernels import NodeKernels
from freshline.kernel.core.events import Event, Record
from freshline.kernel.core.journal import FORMAT
from freshline.kernel.core.kernel import JobNotRunning, Kernel
from freshline.planning.plan.make import make_plan, without_bounds
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.step_placement import StepPlacement

# The errors that a damaged record may cause.
_DAMAGE: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def kernel_of(header: Record) -> Kernel:
    """The kernel of a journal's header, as it was when the run began."""
    if "node_crashes" in header:
        return NodeKernels(_plan_of(header), header["now"], header["freshness"])
    batches = header.get("batches", True)
    node = header.get("node")
    return assemble(_plan_of(header), header["now"], header["freshness"], batches=batches, node=node)


def _plan_of(header: Record) -> Plan:
    placement = header.get("placement")
    placed = None if placement is None else StepPlacement.from_record(placement)
    plan = make_plan(from_record(header["warehouse"]), placed=placed)
    return without_bounds(plan, frozenset(header.get("unknown", ())))


def _restarted(header: Record, record: Record) -> Kernel:
    """The kernel that goes on after a crash of all nodes."""
    if "node_crashes" in header:
        return NodeKernels(_plan_of(header), record["now"], record["restarted"])
    return assemble(_plan_of(header), record["now"], record["restarted"], live=False)


def kernel_to_replay(header: Record, journal: str) -> Kernel:
    """The kernel of an unchecked header; InputError if this version cannot replay it."""
    if "warehouse" not in header:
        raise InputError(
            f"{journal} is not a log of a run", "Name a log of `freshline run` or `simulate --log`"
        )
    written_as = header.get("journal", 1)
    if written_as != FORMAT:
        version = cut(str(header.get("freshline", "of an unknown version")))
        what = f"{journal} was written by Freshline {version} (journal format {cut(str(written_as))})"
        remedy = "Replay it with the version that wrote it"
        raise InputError(f"{what}; this version replays format {FORMAT}", remedy)
    try:
        return kernel_of(header)
    except _DAMAGE as error:
        what = f"the first line of {journal} is damaged ({type(error).__name__}: {cut(str(error))})"
        raise InputError(what, "Name an undamaged log") from error


@dataclass(frozen=True, slots=True)
class Difference:
    """A call at which the replayed kernel gave other instructions."""

    call: int
    now: int
    journal: list[Record]
    replayed: list[Record]
    reason: str | None = None  # why the kernel could not take the journal's events


def _event(record: Record, kernel: Kernel, known: Mapping[str, type[Event]]) -> Event:
    word = next(iter(record), "")
    if word not in known:
        what = f"the journal has an event {cut(word)!r}, which this version does not know"
        raise InputError(what, "Replay it with the version that wrote it, or name an undamaged log")
    return known[word].from_record(record, kernel)


def replay(
    kernel: Kernel, records: Iterable[Record], header: Record | None = None
) -> tuple[int, Difference | None]:
    """Replays a journal's calls on a fresh kernel: the number that agreed, and the first that did not.

    After a crash of a simulated runner, a second kernel made from the header goes on. The caller passes a
    line that was cut short, as by a full disk, as an empty record. An unknown event is an InputError.
    """
    known = {event.word: event for kind in KINDS for event in kind.events}
    calls = 0
    for record in records:
        if "now" not in record:
            return calls, Difference(calls + 1, kernel.now, [], [], "its line is cut short")
        written = record.get("instructions", [])
        try:
            if "restarted" in record:
                assert header is not None, "the runner crashed, and no header says what it ran"
                kernel = _restarted(header, record)
                calls += 1
                continue
            events = [_event(entry, kernel, known) for entry in record.get("events", ())]
            instructions = kernel.handle(record["now"], events, record.get("closing", False))
        except InputError:
            raise
        except JobNotRunning as error:
            return calls, Difference(calls + 1, record["now"], written, [], str(error))
        except _DAMAGE as error:
            reason = f"the kernel cannot take it ({type(error).__name__}: {cut(str(error))})"
            return calls, Difference(calls + 1, record["now"], written, [], reason)
        said = [instruction.record() for instruction in instructions]
        if said != written:
            return calls, Difference(calls + 1, record["now"], written, said)
        calls += 1
    return calls, None
