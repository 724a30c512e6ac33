"""Requests in the kernel: parts one after the other, deadlines, what is said of them, journal and drain."""

import io
import json
from collections.abc import Callable

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import policies_for
from freshline.definitions.load import loads
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.events import Cancel, Event, JobFailed, Start
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.requests.events import PartDone, PartLost, RequestArrived, UpdateDiscarded
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request, RequestPart
from freshline.kernel.requests.service import service_of
from freshline.kernel.tables.drain import DrainBegun
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.planning.plan.make import make_plan
from freshline.simulation.conditions.conditions import Conditions
from freshline.simulation.simulated_run import header_of

MS = SECOND // 1000
POLICIES = policies_for("classes")
PROJECT = """\
name: test
pools: {main: {tracks: TRACKS, policy: POLICY}}
feeds: {f: {path: landing, format: json, schema: "ts timestamp", timestamp: ts, period: 60s}}
tables: {t: {feed: f, cost: {startup: 1s}}}
classes:
  gold: {error: 0.3, data_error_factor: 2}
  lead: {error: 0.5, data_error_factor: 0.1}
"""


class Run:
    """A kernel, a journal of it, and what it said last."""

    def __init__(self, policy: str = "rds-quota", tracks: int = 1) -> None:
        text = PROJECT.replace("TRACKS", str(tracks)).replace("POLICY", policy)
        plan = make_plan(loads(text))
        self.kernel: Kernel = assemble(plan)
        self.header = header_of(plan, 0, 0, Conditions())
        self._lines = io.StringIO()
        self._journal = Journal(self._lines, self.header)
        self._number = 0

    def step(self, at_ms: int, *events: Event) -> list:
        said = self.kernel.handle(at_ms * MS, list(events))
        self._journal.write(at_ms * MS, events, said)
        validate(self.kernel)
        return said

    def request(self, at_ms: int, deadline_ms: int, *parts_ms: int, name: str = "gold") -> RequestArrived:
        self._number += 1
        parts_us = tuple(part * MS for part in parts_ms)
        return RequestArrived(Request(self._number, name, at_ms * MS, deadline_ms * MS, parts_us))

    def replays(self) -> bool:
        lines = [json.loads(line) for line in self._lines.getvalue().splitlines()]
        calls, difference = replay(kernel_of(lines[0]), lines[1:])
        return difference is None and calls == len(lines) - 1


def part_of(said: list) -> RequestPart:
    (start,) = [each for each in said if isinstance(each, Start)]
    assert isinstance(start.job, RequestPart)
    return start.job


def told(said: list) -> list[tuple]:
    """What is said beside starts, in short."""
    short: dict[type, Callable] = {
        AnswerRequest: lambda each: ("answer", each.request.number, each.parts_done),
        RejectRequest: lambda each: ("reject", each.request.number),
        Cancel: lambda each: ("cancel", each.job.request.number, each.job.part),
    }
    return [short[type(each)](each) for each in said if type(each) in short]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_request_is_done_part_by_part_and_answered_when_all_is_done(policy: str) -> None:
    run = Run(policy)
    asked = run.request(0, 1000, 10, 20, 30)
    said = run.step(0, asked)
    for number, (at, cost) in enumerate([(10, 10), (30, 20), (60, 30)]):
        part = part_of(said)
        assert (part.part, part.request, part.deadline) == (number, asked.request, 1000 * MS)
        assert told(said) == []
        said = run.step(at, PartDone(part, cost * MS))
    assert told(said) == [("answer", 1, 3)]
    assert run.step(1000) == []
    assert run.replays()


@pytest.mark.parametrize("policy", POLICIES)
def test_at_the_deadline_the_part_that_runs_is_cancelled_and_the_answer_goes_out(policy: str) -> None:
    run = Run(policy)
    part = part_of(run.step(0, run.request(0, 100, 10, 20, 30)))
    part = part_of(run.step(50, PartDone(part, 50 * MS)))
    assert run.kernel.wake_at == 100 * MS
    assert told(run.step(100)) == [("cancel", 1, 1), ("answer", 1, 1)]
    # The track is free when the part has ended, not before.
    other = run.request(101, 900, 10)
    assert run.step(101, other) == []
    assert part_of(run.step(103, PartLost(part))).request is other.request
    assert run.replays()


def test_a_part_that_ended_while_it_was_cancelled_changes_no_answer() -> None:
    run = Run()
    part = part_of(run.step(0, run.request(0, 100, 10, 20)))
    assert told(run.step(100)) == [("cancel", 1, 0), ("answer", 1, 0)]
    assert run.step(101, PartDone(part, 101 * MS)) == []
    assert run.replays()


def test_a_part_that_ends_at_the_deadline_counts() -> None:
    run = Run()
    part = part_of(run.step(0, run.request(0, 100, 10, 20)))
    assert told(run.step(100, PartDone(part, 100 * MS))) == [("answer", 1, 1)]


def test_a_part_that_failed_is_tried_again_unless_there_is_no_hope() -> None:
    run = Run()
    part = part_of(run.step(0, run.request(0, 100, 10, 20)))
    part = part_of(run.step(10, PartDone(part, 10 * MS)))
    again = part_of(run.step(20, PartLost(part)))
    assert (again.part, again.number) == (1, part.number + 1)
    assert told(run.step(30, PartLost(again, hopeless=True))) == [("answer", 1, 1)]
    part = part_of(run.step(40, run.request(40, 100, 10)))
    assert told(run.step(50, JobFailed(part, 0))) == [("answer", 2, 0)]
    assert run.replays()


@pytest.mark.parametrize("policy", POLICIES)
def test_updates_go_first_and_interrupt_no_part(policy: str) -> None:
    run = Run(policy)
    part = part_of(run.step(1, run.request(1, 9000, 10, 10, 10)))
    assert run.step(5, FileArrived("f", DataFile(5 * MS, "a"))) == []
    (start,) = run.step(11, PartDone(part, 10 * MS))
    assert start.job.task.name == "t"
    said = run.step(900, UpdateFinished(start.job, start.job.loaded_to))
    assert part_of(said).part == 1
    assert run.replays()


def test_several_tracks_do_parts_of_several_requests_of_one_class() -> None:
    run = Run("admit-all", tracks=2)
    said = run.step(0, run.request(0, 300, 10, 10), run.request(0, 200, 10, 10), run.request(0, 100, 10))
    one, other = (each.job for each in said)
    assert (one.request.number, other.request.number) == (3, 2)
    assert told(run.step(10, PartDone(one, 10 * MS), PartDone(other, 10 * MS))) == [("answer", 3, 1)]
    assert run.replays()


def test_one_that_comes_after_its_deadline_has_no_answer() -> None:
    run = Run("admit-all")
    assert told(run.step(500, run.request(1, 400, 10))) == [("answer", 1, 0)]


def test_a_discarded_update_is_told_to_who_decides_about_requests() -> None:
    run = Run("rds-edf")
    service = service_of(run.kernel.pools[0])
    run.step(10, UpdateDiscarded("t", 700 * MS))
    assert service.gained_us == 700 * MS
    assert service.mwde == 0
    assert [service.data_error_factor(name) for name in ("gold", "lead")] == [2, 0.1]
    assert run.replays()


@pytest.mark.parametrize("policy", POLICIES)
def test_figures_are_those_of_the_last_period(policy: str) -> None:
    run = Run(policy)
    service = service_of(run.kernel.pools[0])
    assert service.figures("gold") == (None, None, None, 0, "IDLE")
    both = run.request(2000, 2100, 10, 20, 20), run.request(2000, 9000, 10, name="lead")
    part = part_of(run.step(2000, *both))
    assert service.figures("lead").waiting == 1
    part = part_of(run.step(2010, PartDone(part, 10 * MS)))
    run.step(2100)
    run.step(2101, PartLost(part))
    run.step(5000)
    gold, lead = service.figures("gold"), service.figures("lead")
    assert (gold.ate, gold.admitted, gold.waiting) == (1.0, 1.0, 0)
    assert (lead.ate, lead.admitted, lead.waiting) == (None, 1.0, 1)
    run.step(10_000)
    assert service.figures("gold")[:2] == (None, None)


@pytest.mark.parametrize("policy", POLICIES)
def test_draining_tables_leaves_requests_as_they_are(policy: str) -> None:
    run = Run(policy)
    part = part_of(run.step(0, run.request(0, 100, 10, 20), run.request(0, 3000, 10, 10)))
    run.step(5, FileArrived("f", DataFile(5 * MS, "a")))
    run.step(6, DrainBegun())
    (start,) = run.step(10, PartDone(part, 10 * MS))
    assert start.job.task.name == "t"
    assert told(run.step(100)) == [("answer", 1, 1)]
    assert part_of(run.step(900, UpdateFinished(start.job, start.job.loaded_to))).request.number == 2
    assert run.replays()


def test_the_end_of_a_run_starts_nothing_and_answers_what_is_done() -> None:
    run = Run()
    part = part_of(run.step(0, run.request(0, 100, 10), run.request(0, 200, 10)))
    said = run.kernel.handle(10 * MS, [PartDone(part, 10 * MS)], closing=True)
    assert told(said) == [("answer", 1, 1)]
    assert len(said) == 1
