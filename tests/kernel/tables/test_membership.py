"""Tables that come to and leave a kernel while it runs."""

import io
import json
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.definitions.sections.cost import Cost
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.assembly.table_tasks import table_spec
from freshline.kernel.assembly.terms import learned
from freshline.kernel.core.events import JobFailed
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.membership import TableAdded, TableRemoved
from freshline.kernel.tables.table_spec import TableSpec
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.simulated_run import files_of
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline_lab.runs.warehouses import random_outages, random_warehouse

END = 120 * SECOND
policies = st.sampled_from(["fifo", "rm", "edf", "edf-strict"])


def newcomer(warehouse: Warehouse, name: str, freshness: int | None = None) -> TableSpec:
    return table_spec(warehouse, make_plan(warehouse).tables_by_name[name], freshness)


def without(warehouse: Warehouse, names: set[str]) -> Warehouse:
    return replace(
        warehouse,
        tables={name: table for name, table in warehouse.tables.items() if name not in names},
        topological_order=tuple(name for name in warehouse.topological_order if name not in names),
        released_by_files=warehouse.released_by_files - names,
    )


def unread(warehouse: Warehouse) -> list[str]:
    read = {source for table in warehouse.tables.values() for source in table.sources}
    return [name for name in warehouse.tables if name not in read]


class Run:
    """A simulated run of a part of a warehouse, and its journal."""

    def __init__(self, whole: Warehouse, first: Warehouse, seed: int, outages: dict) -> None:
        self.header = {"now": 0, "freshness": None, "warehouse": to_record(first)}
        self._stream = io.StringIO()
        costs = {name: CostDraws(table.cost, seed, name) for name, table in whole.tables.items()}
        files = {
            name: files_of(feed, seed, outages.get(name, ()))
            for name, feed in whole.feeds.items()
            if feed.arrival == "files"
        }
        journal = Journal(self._stream, self.header)
        self.driver = SimulatedDriver(
            kernel_of(self.header), {Update: SimulatedUpdates(costs)}, files, journal
        )

    @property
    def lines(self) -> list[dict]:
        return [json.loads(line) for line in self._stream.getvalue().splitlines()][1:]

    def starts(self, table: str) -> list[int]:
        said = [(line["now"], start) for line in self.lines for start in line.get("instructions", ())]
        return [now for now, start in said if start["start"] == table]


@sampled(100)
@given(st.integers(0, 10**6), policies)
def test_tables_come_and_go_the_kernel_stays_sound_and_its_journal_replays(seed, policy):
    rng = Random(f"membership:{seed}")
    warehouse = what_if(random_warehouse(seed), policy, {})
    chosen = set(rng.sample(unread(warehouse), rng.randint(0, len(unread(warehouse)))))
    if len(chosen) == len(warehouse.tables):
        chosen.pop()
    run = Run(warehouse, without(warehouse, chosen), seed, random_outages(warehouse, seed, END // 2))
    came, went = {}, {}
    for name in sorted(chosen):
        came[name] = rng.randrange(END // 2)
        # A derived table is never fresher than what it reads.
        freshness = None if warehouse.tables[name].feed is None else rng.choice((None, came[name]))
        run.driver.tell(came[name], TableAdded(newcomer(warehouse, name, freshness)))
    for name in rng.sample(unread(warehouse), rng.randint(0, len(unread(warehouse)))):
        went[name] = came.get(name, 0) + rng.randint(1, END // 2)
        run.driver.tell(went[name], TableRemoved(name))
    while run.driver.next_at <= END:
        run.driver.step()
        validate(run.driver.kernel)
    for name in warehouse.tables:
        assert all(came.get(name, 0) <= start <= went.get(name, END) for start in run.starts(name))
    there = {task.name for task in run.driver.kernel.tasks}
    assert there - went.keys() == warehouse.tables.keys() - went.keys()
    assert all(run.driver.kernel.task(name).job is not None for name in there & went.keys())
    lines = run.lines
    assert replay(kernel_of(run.header), lines) == (len(lines), None)


@sampled(100)
@given(st.integers(0, 10**6), policies)
def test_a_table_that_comes_before_anything_happens_is_as_if_it_had_always_been_there(seed, policy):
    warehouse = what_if(random_warehouse(seed), policy, {})
    last = list(warehouse.tables)[-1]  # of equal jobs its own are the last either way
    whole = Run(warehouse, warehouse, seed, {})
    whole.driver.run(END)
    if len(warehouse.tables) == 1:
        return
    grown = Run(warehouse, without(warehouse, {last}), seed, {})
    grown.driver.tell(0, TableAdded(newcomer(warehouse, last, freshness=0)))
    grown.driver.run(END)
    for name in warehouse.tables:
        assert grown.starts(name) == whole.starts(name)


def test_a_table_goes_after_the_job_that_runs_and_after_its_retries():
    warehouse = Builder().files("a", period=10).files("b", period=10).build()
    kernel = assemble(make_plan(warehouse))
    (start,) = kernel.handle(SECOND, [FileArrived("a", DataFile(SECOND, "1"))])
    kernel.handle(2 * SECOND, [TableRemoved("a"), FileArrived("a", DataFile(2 * SECOND, "2"))])
    kernel.handle(3 * SECOND, [JobFailed(start.job, 4 * SECOND)])
    (again,) = kernel.handle(4 * SECOND, [])
    assert kernel.handle(5 * SECOND, [UpdateFinished(again.job, again.job.loaded_to)]) == []
    assert [task.name for task in kernel.tasks] == ["b"]
    assert kernel.handle(6 * SECOND, [FileArrived("a", DataFile(6 * SECOND, "3"))]) == []
    validate(kernel)


@pytest.mark.parametrize("policy", ["prp", "aus", "aus-slack"])
def test_nobody_comes_to_a_pool_whose_policy_counts_with_those_that_are_there(policy):
    warehouse = Builder(policy=policy).files("a", period=10, cost=1).files("b", period=10, cost=1).build()
    kernel = assemble(make_plan(without(warehouse, {"b"})))
    with pytest.raises(AssertionError, match="no table can join pool updates"):
        kernel.handle(0, [TableAdded(newcomer(warehouse, "b"))])


def test_what_is_learned_goes_to_the_tables_that_are_there():
    warehouse = Builder().files("a", period=10, cost=1).files("b", period=10, cost=1).build()
    dearer = {
        name: replace(table, cost=Cost(3 * SECOND, Fraction(0))) for name, table in warehouse.tables.items()
    }
    kernel = assemble(make_plan(without(warehouse, {"b"})))
    kernel.handle(0, [TableRemoved("a"), TableAdded(newcomer(warehouse, "b"))])
    assert [task.name for task in kernel.tasks] == ["b"]
    # A plan of those that were there at first, and one of all that were ever there.
    assert learned(kernel, make_plan(without(replace(warehouse, tables=dearer), {"b"}))).tables == {}
    event = learned(kernel, make_plan(replace(warehouse, tables=dearer)))
    assert list(event.tables) == ["b"]
    kernel.handle(SECOND, [event])
    assert kernel.task("b").worst_case_us == 3 * SECOND


def test_a_table_that_others_read_does_not_go():
    warehouse = Builder().files("a", period=10).derived("d", ["a"], period=10).build()
    kernel = assemble(make_plan(warehouse))
    with pytest.raises(AssertionError, match="is read by others"):
        kernel.handle(0, [TableRemoved("a")])
