"""The status of steps and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freshline.base.duration import format_duration, seconds
from freshline.base.instants import written
from freshline.live.status.screen_table import count, screen_table
from freshline.live.status.section import NodeMerge, StatusSection, newest_by_name
from freshline.live.tables.table_status import late_lines, shed_lines
from freshline.planning.plan.step_placement import StepPlacement


@dataclass(frozen=True)
class PlacementStatus:
    """The placement of the nodes and the deadlines that it does not keep."""

    stretch: float  # of all deadlines; 1 if they are kept
    unproven: tuple[tuple[str, str], ...]  # outputs that may be late, with the reason
    assumed: tuple[str, ...]  # steps without a known cost
    shortcomings: tuple[str, ...]  # the above as sentences
    stored: Mapping[str, Any] | None = None  # the placement as a record

    @classmethod
    def of(cls, placed: StepPlacement) -> Self:
        unproven, said = tuple(placed.unproven.items()), tuple(placed.shortcomings)
        return cls(placed.stretch, unproven, placed.assumed, said, placed.record())

    @property
    def step_placement(self) -> StepPlacement | None:
        return None if self.stored is None else StepPlacement.from_record(self.stored)

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        unproven = tuple((output, why) for output, why in record["unproven"])
        assumed, said = tuple(record["assumed"]), tuple(record["shortcomings"])
        return cls(record["stretch"], unproven, assumed, said, record.get("stored"))

    def record(self) -> dict[str, Any]:
        """The placement as JSON for users' programs."""
        unproven = [{"output": output, "reason": why} for output, why in self.unproven]
        return {"stretch": self.stretch, "unproven": unproven, "assumed": list(self.assumed)}


@dataclass(frozen=True)
class StepStatus:
    """A step at one instant. Counts are since its node's run began."""

    name: str
    node: str
    sub_deadline_us: int | None
    misses: int  # instances finished after their own deadline; recovery has none
    backlog: int  # instances that are waiting or running
    rows: int
    rows_late: int
    freshness_us: int | None
    message: str | None = None  # the last failure
    rows_shed: int = 0  # records that `shed` left out
    late_warning: str | None = None  # if a noticeable share of its rows came late
    recovering: bool = False  # whether a backlog waits or is loaded
    catching_up: bool = False  # whether its node catches up after a restart: nothing is promised
    files_waiting: int = 0  # or being loaded, if it loads a feed
    backlogs: tuple[tuple[int, int, int], ...] = ()  # the last: when the first and last file came, files

    def record(self) -> dict[str, Any]:
        """The step as JSON for users' programs."""
        return {
            "name": self.name,
            "node": self.node,
            "sub_deadline": seconds(self.sub_deadline_us),
            "misses": self.misses,
            "backlog": self.backlog,
            "rows": self.rows,
            "rows_late": self.rows_late,
            "rows_shed": self.rows_shed,
            "freshness": written(self.freshness_us),
            "last_error": self.message,
            "late_warning": self.late_warning,
            "recovering": self.recovering,
            "files_waiting": self.files_waiting,
        }


@dataclass(frozen=True)
class OutputStatus:
    """An output at one instant: the ages of its rows at their commits."""

    name: str
    node: str
    deadline_us: int
    rows: int
    misses: int  # rows older than the deadline, and records too late to reach the output
    p50_us: int | None
    p95_us: int | None
    max_us: int | None
    # After an outage of a feed, in the status of all nodes:
    recovering: bool = False
    files_waiting: int = 0  # of its feeds that were down
    recovery_due_us: int | None = None  # when it should have caught up; None if nothing is promised

    def record(self, as_of_us: int) -> dict[str, Any]:
        """The output as JSON for users' programs."""
        due_us = self.recovery_due_us
        return {
            "name": self.name,
            "node": self.node,
            "deadline": seconds(self.deadline_us),
            "rows": self.rows,
            "misses": self.misses,
            "latency": {
                "p50": seconds(self.p50_us),
                "p95": seconds(self.p95_us),
                "max": seconds(self.max_us),
            },
            "recovering": self.recovering,
            "files_waiting": self.files_waiting,
            "recovery_due": None if due_us is None else seconds(due_us - as_of_us),
        }


class OutputSection(StatusSection[OutputStatus]):
    """The outputs: tables with an end-to-end deadline."""

    name = "outputs"
    leads = True
    rank = 1

    def read(self, record: dict[str, Any]) -> OutputStatus:
        return OutputStatus(**record)

    def record(self, row: OutputStatus, as_of_us: int) -> dict[str, Any]:
        return row.record(as_of_us)

    def merged(self, nodes: NodeMerge) -> tuple[OutputStatus, ...]:
        """The outputs. A record that came late to a step counts as a miss of each output downstream."""
        late = {step.name: step.rows_late for step in STEPS.merged(nodes)}
        return tuple(
            replace(row, misses=row.misses + sum(late.get(each, 0) for each in nodes.upstream[name]))
            for name, row in newest_by_name(self, nodes).items()
            if name in nodes.upstream
        )

    def view(self, rows: Sequence[OutputStatus], as_of_us: int) -> list[RenderableType]:
        return [_output_table(rows)]


class StepSection(StatusSection[StepStatus]):
    """The steps: an output's table and its sources. A late step shows before its output does."""

    name = "steps"
    leads = True
    rank = 1

    def read(self, record: dict[str, Any]) -> StepStatus:
        return StepStatus(**record | {"backlogs": tuple(map(tuple, record["backlogs"]))})

    def merged(self, nodes: NodeMerge) -> tuple[StepStatus, ...]:
        return tuple(newest_by_name(self, nodes).values())

    def view(self, rows: Sequence[StepStatus], as_of_us: int) -> list[RenderableType]:
        return [_step_table(rows)]

    def lines(self, rows: Sequence[StepStatus], as_of_us: int) -> dict[str, list[str]]:
        return {
            "Messages": [
                *(f"{row.name}: {row.message}" for row in rows if row.message),
                *(row.late_warning for row in rows if row.late_warning),
            ],
            "Left out": shed_lines({row.name: row.rows_shed for row in rows}),
        }

    def verdict_lines(self, rows: Sequence[StepStatus], at_us: int) -> list[str]:
        return late_lines(row.late_warning for row in rows)


class PlacementSection(StatusSection[PlacementStatus]):
    """The placement of the steps, in a warehouse with nodes."""

    name = "placement"
    single = True
    leads = True

    def read(self, record: dict[str, Any]) -> PlacementStatus:
        return PlacementStatus.read(record)

    def merged(self, nodes: NodeMerge) -> tuple[PlacementStatus, ...]:
        found = (row for status in reversed(nodes.newest_last) for row in status.rows(self))
        return tuple(row for row in [next(found, None)] if row is not None)

    def heading(self, rows: Sequence[PlacementStatus]) -> list[str]:
        return [sentence for row in rows for sentence in row.shortcomings]


def placement_rows(placed: StepPlacement | None) -> dict[str, tuple[PlacementStatus, ...]]:
    return {PLACEMENT.name: () if placed is None else (PlacementStatus.of(placed),)}


OUTPUTS = OutputSection()
STEPS = StepSection()
PLACEMENT = PlacementSection()


def _output_table(outputs: Sequence[OutputStatus]) -> Table:
    return screen_table(
        outputs,
        {
            "output": lambda row: Text(row.name),
            "node": lambda row: Text(row.node),
            ">deadline": lambda row: format_duration(row.deadline_us),
            ">rows": lambda row: count(row.rows),
            ">missed": lambda row: _missed(row.misses),
            ">p50": lambda row: format_duration(row.p50_us),
            ">p95": lambda row: format_duration(row.p95_us),
            ">max": _longest,
        },
    )


def _longest(output: OutputStatus) -> Text:
    is_late = output.max_us is not None and output.max_us > output.deadline_us
    return Text(format_duration(output.max_us), style="red" if is_late else "")


def _step_table(steps: Sequence[StepStatus]) -> Table:
    return screen_table(
        steps,
        {
            "step": lambda row: Text(row.name),
            "node": lambda row: Text(row.node),
            ">due after": lambda row: format_duration(row.sub_deadline_us),
            ">missed": lambda row: _missed(row.misses),
            ">backlog": lambda row: count(row.backlog),
            ">rows": lambda row: count(row.rows),
            ">late": lambda row: count(row.rows_late),
        },
    )


def _missed(misses: int) -> Text:
    return Text(count(misses), style="red" if misses else "")
