"""Digests of the journals of many simulated runs: two versions that print the same decide the same.

Random warehouses with outages, gaps, jitter and derived tables under every policy; and under the adaptive
ones runs in which costs become known and jobs fail. The first line of a journal, its header, is left out.

    PYTHONPATH=src .venv/bin/python scripts/journal_digests.py > before.txt
"""

from __future__ import annotations

import argparse
import io
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from random import Random

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName, policies_for
from freshline.definitions.sections.cost import Cost
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.assembly.replay import kernel_of
from freshline.kernel.assembly.terms import learned
from freshline.kernel.core.events import Event, JobFailed
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.events import UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation.conditions.outages import checked_outages
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.simulate import simulate
from freshline.simulation.simulated_run import files_of
from freshline.simulation.updates import SimulatedUpdates
from freshline_lab.runs.warehouses import (
    ANY_SHAPE,
    crowded_warehouse,
    random_gaps,
    random_outages,
    random_warehouse,
)

GUESSED = Cost(SECOND, Fraction(1, 10))


class Wakes:
    """Has the kernel called at an instant."""

    def due(self, at: int) -> None:
        return None


class Troubled(SimulatedDriver):
    """A simulated run in which a plan becomes known at an instant, and one job in so many fails."""

    def trouble(self, seed: int, learned_at: int, warehouse: Warehouse) -> None:
        self._random = Random(f"failures:{seed}")
        self._learned_at, self._plan = learned_at, make_plan(warehouse)
        self.kernel.timers.set(learned_at, Wakes())

    def _events(self, now: int) -> list[Event]:
        events = [self._maybe_failed(event, now) for event in super()._events(now)]
        if now == self._learned_at:
            return [learned(self.kernel, self._plan, live=False), *events]
        return events

    def _maybe_failed(self, event: Event, now: int) -> Event:
        if isinstance(event, UpdateFinished) and self._random.random() < 0.02:
            return JobFailed(event.job, now + self._random.randint(1, 5 * SECOND))
        return event


def digest(journal: str) -> str:
    return sha256(journal.split("\n", 1)[1].encode()).hexdigest()


def plain(seed: int, policy: PolicyName, length_s: int) -> str:
    """A run as `freshline simulate` does it; every fifth warehouse is a crowded one."""
    warehouse = crowded_warehouse(seed) if seed % 5 == 4 else random_warehouse(seed, ANY_SHAPE)
    warehouse = what_if(warehouse, policy, {})
    outages = random_outages(warehouse, seed, length_s * SECOND // 2)
    gaps = random_gaps(warehouse, seed, length_s * SECOND) if seed % 2 else {}
    log = io.StringIO()
    simulate(make_plan(warehouse), length_s * SECOND, seed, outages=outages, gaps=gaps, journal_to=log)
    return digest(log.getvalue())


def troubled(seed: int, policy: PolicyName, length_s: int) -> str:
    """A run that begins with made-up costs, and in which jobs fail."""
    rng = Random(f"troubled:{seed}")
    warehouse = what_if(crowded_warehouse(seed) if seed % 2 else random_warehouse(seed), policy, {})
    outages = checked_outages(warehouse, random_outages(warehouse, seed, length_s * SECOND // 2))
    unknown = rng.sample(list(warehouse.tables), rng.randint(1, len(warehouse.tables)))
    tables = {
        name: replace(table, cost=GUESSED) if name in unknown else table
        for name, table in warehouse.tables.items()
    }
    guessed = to_record(replace(warehouse, tables=tables))
    header = {"now": 0, "freshness": None, "unknown": sorted(unknown), "warehouse": guessed}
    log = io.StringIO()
    costs = {
        name: CostDraws(table.cost, seed, name) for name, table in warehouse.tables.items() if table.cost
    }
    files = {
        name: files_of(feed, seed, outages.get(name, ()))
        for name, feed in warehouse.feeds.items()
        if feed.arrival == "files"
    }
    driver = Troubled(kernel_of(header), {Update: SimulatedUpdates(costs)}, files, Journal(log, header))
    driver.trouble(seed, rng.randrange(length_s * SECOND * 3 // 4), warehouse)
    driver.run(length_s * SECOND)
    validate(driver.kernel)
    return digest(log.getvalue())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warehouses", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=300)
    arguments = parser.parse_args()
    for policy in policies_for("tables"):
        for seed in range(arguments.warehouses):
            print(policy, seed, plain(seed, policy, arguments.seconds), flush=True)
    for policy in policies_for("tables"):
        for seed in range(arguments.warehouses if policy.startswith("aus") else arguments.warehouses // 5):
            print(policy, seed, "troubled", troubled(seed, policy, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
