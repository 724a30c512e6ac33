"""A kernel for a part of a warehouse: what happens elsewhere it hears as an advance, and decides the same."""

import io
import json
from typing import Any

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.load import loads
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_to_replay, replay
from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.steps.events import StepsCommitted
from freshline.kernel.steps.task import steps_of
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.remote_table import RemoteAdvanced
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.planning.plan.plan import Plan
from freshline.simulation.simulate import simulate

TEXT = """
name: two
nodes: {edge: {policy: POLICY}, centre: {speed: 2, policy: POLICY}, spare: {}}
pools: {here: {tracks: 1, node: edge}, there: {tracks: 2, node: centre}}
feeds:
  speeds: {period: 8s, jitter: 1s, timestamp_jitter: 1s, node: edge, burst: 20, age: 2s}
  plates: {period: 5s, jitter: 1s, node: centre, burst: 5}
tables:
  readings: {feed: speeds, cost: {startup: 100ms, per_row: 1ms, variability: 0.2}}
  fast: {sources: [readings], node: edge, selectivity: 0.5, cost: {startup: 300ms, variability: 0.2}}
  known: {feed: plates, cost: {startup: 200ms}}
  fined: {sources: [fast, known], node: centre, cost: {startup: 200ms, variability: 0.2}}
  letters: {sources: [fined], deadline: 40s, node: centre, cost: {startup: 100ms}}
  alerts: {sources: [fast], deadline: 12s, node: edge, cost: {startup: 200ms}}
  windows: {sources: [fast], deadline: 60s, align: 10s, node: spare, cost: {startup: 100ms}}
  raw: {feed: speeds, pool: here, cost: {startup: 500ms}}
  counts: {sources: [raw, fast], pool: there, period: 20s, cost: {startup: 1s}}
  reports: {sources: [counts, letters], pool: here, period: 40s, cost: {startup: 1s}}
"""
NODES = ("edge", "centre", "spare")


def plan_of(policy: str) -> Plan:
    warehouse = loads(TEXT.replace("POLICY", policy))
    return with_outputs(make_plan(warehouse), plan_outputs(warehouse))


def calls_of(plan: Plan, seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    log = io.StringIO()
    simulate(plan, 400 * SECOND, seed, journal_to=log)
    header, *calls = (json.loads(line) for line in log.getvalue().splitlines())
    return header, calls


class Part:
    """The kernel of a node, told what the whole one was told as far as the node would hear of it."""

    def __init__(self, plan: Plan, node: str) -> None:
        self.kernel = assemble(plan, node=node)
        self.names = {task.name for task in self.kernel.tasks}
        pools = [pool.name for pool in self.kernel.pools]
        tracks = {pool.name: pool.tracks_from for pool in assemble(plan).pools}
        # A track has another number in a kernel that has fewer of them.
        self.tracks = {
            tracks[name] + number: own.tracks_from + number
            for name, own in zip(pools, self.kernel.pools, strict=True)
            for number in range(own.tracks)
        }

    def call(self, now: int, events: list[Event]) -> list[dict[str, Any]]:
        said = [instruction.record() for instruction in self.kernel.handle(now, events)]
        validate(self.kernel)
        return said

    def events(self, records: list[dict[str, Any]], whole: Kernel) -> list[Event]:
        found: list[Event] = []
        for record in records:
            if "arrived" in record:
                file = DataFile(record["timestamp"], record["file"], record.get("rows", 0))
                found.append(FileArrived(record["arrived"], file))
                continue
            name = record.get("committed") or record["finished"]
            if name in self.names:
                job = self.kernel.running(name, record["job"])
                found.append(
                    UpdateFinished(job, record["freshness"])
                    if isinstance(job, Update)
                    else StepsCommitted(job)  # type: ignore[arg-type]
                )
            else:
                found += advances(record, whole)
        return found


def advances(record: dict[str, Any], whole: Kernel) -> list[Event]:
    """What other nodes hear of a job's end: its tables have advanced."""
    if "finished" in record:
        return [RemoteAdvanced(record["finished"], record["freshness"])]
    job: Any = whole.running(record["committed"], record["job"])
    return [RemoteAdvanced(part.name, part.loaded_to, part.instance.came_at) for part in job.parts]


@pytest.mark.parametrize("policy", ["edf", "fifo"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_nodes_kernel_says_exactly_what_the_whole_one_says_for_that_node(policy: str, seed: int) -> None:
    plan = plan_of(policy)
    header, calls = calls_of(plan, seed)
    whole = kernel_to_replay(header, "log")
    parts = [Part(plan, node) for node in NODES]
    assert sorted(name for part in parts for name in part.names) == sorted(task.name for task in whole.tasks)
    started = 0
    for call in calls:
        records = call.get("events", [])
        heard = [part.events(records, whole) for part in parts]
        difference = replay(whole, [call])[1]
        assert difference is None, difference
        for part, events in zip(parts, heard, strict=True):
            expected = [
                {**record, "track": part.tracks[record["track"]]}
                for record in call.get("instructions", [])
                if record["start"] in part.names
            ]
            assert part.call(call["now"], events) == expected, call
            started += len(expected)
    assert started > 300
    for step in steps_of(whole):
        (own,) = (task for part in parts for task in steps_of(part.kernel) if task.name == step.name)
        assert (own.freshness, len(own.waiting)) == (step.freshness, len(step.waiting))


def test_a_node_knows_of_other_nodes_only_what_it_reads() -> None:
    plan = plan_of("edf")
    assert {node: sorted(assemble(plan, node=node).elsewhere) for node in NODES} == {
        "edge": ["counts", "letters"],
        "centre": ["fast", "raw"],
        "spare": ["fast"],
    }


def test_a_journal_of_a_node_is_replayed() -> None:
    plan = plan_of("edf")
    assert plan.placed is not None
    header, _ = calls_of(plan, 1)
    own = kernel_to_replay({**header, "node": "spare"}, "log")
    assert [task.name for task in own.tasks] == ["windows"]
    record = {"now": 5, "events": [{"advanced": "fast", "freshness": 30 * SECOND}]}
    expected = assemble(plan, node="spare").handle(5, [RemoteAdvanced("fast", 30 * SECOND)])
    record["instructions"] = [instruction.record() for instruction in expected]
    assert replay(own, [record]) == (1, None)
    assert expected[0].record()["parts"] == [{"step": "windows", "from": 0, "to": 30 * SECOND - 1}]


@pytest.mark.parametrize(("committed_at", "created"), [(3, 3), (None, 5), (9, 5)])  # ahead: another's clock
def test_deadlines_count_from_the_commit_that_another_node_made_and_not_from_when_it_is_heard(
    committed_at: int | None, created: int
) -> None:
    plan = plan_of("edf")
    assert plan.placed is not None
    kernel = assemble(plan, node="centre")
    kernel.handle(1, [FileArrived("plates", DataFile(40 * SECOND, "1.csv"))])
    (known,) = steps_of(kernel)[:1]
    assert known.job is not None
    kernel.handle(2, [StepsCommitted(known.job)])
    heard = RemoteAdvanced("fast", 30 * SECOND, 1, committed_at)
    assert repr(RemoteAdvanced.from_record(heard.record(), kernel)) == repr(heard)
    (start,) = kernel.handle(5, [RemoteAdvanced.from_record(heard.record(), kernel)])
    due_us = plan.placed.sub_deadlines_us["fined"] + plan.placed.sub_deadlines_us["letters"]
    assert (start.record()["release"], start.record()["deadline"]) == (created, created + due_us)
