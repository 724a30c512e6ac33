"""A new kind of work is a folder in kernel/, a file in simulation/, a folder in live/, and three lines."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from freshline.base.duration import SECOND
from freshline.kernel.assembly import kinds as kernel_kinds
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.validation import validate
from freshline.live import kinds_of_work
from freshline.live.kinds_of_work import KindOfWork
from freshline.live.status.status import WarehouseStatus
from freshline.live.status.view import render
from freshline.planning.plan.make import make_plan
from freshline.simulation import kinds as simulated_kinds
from freshline.simulation.simulate import simulate
from freshline.testing.builder import Builder
from place import Place
from probes.in_kernel import NAME, PROBES_IN_KERNEL
from probes.live import PROBES
from probes.simulated import ProbeResult, SimulatedProbes


@pytest.fixture(autouse=True)
def _three_lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All that the product is told of the new kind."""
    kernel_kinds.KINDS.append(PROBES_IN_KERNEL)
    simulated_kinds.KINDS.append(SimulatedProbes)
    probes = KindOfWork("probes.live:ProbeWork", (PROBES,))
    monkeypatch.setattr(kinds_of_work, "KINDS", (*kinds_of_work.KINDS, probes))
    yield
    kernel_kinds.KINDS.remove(PROBES_IN_KERNEL)
    simulated_kinds.KINDS.remove(SimulatedProbes)


def replays(log: str) -> None:
    header, *calls = map(json.loads, log.splitlines())
    assert sum("probed" in event for call in calls for event in call.get("events", ())) > 0
    kernel = kernel_of(header)
    assert replay(kernel, calls) == (len(calls), None)
    kernel.handle(kernel.now, [])  # what the end of a run left undone
    validate(kernel)


def test_a_new_kind_is_simulated_beside_tables_and_replayed() -> None:
    plan = make_plan(Builder(tracks=2).files("a", period=3).build())
    log = io.StringIO()
    result = simulate(plan, 10 * SECOND, journal_to=log)
    assert result.of(ProbeResult) == (ProbeResult(10),)
    (table,) = result.tables
    assert (table.plan.name, table.jobs > 0) == ("a", True)
    replays(log.getvalue())


def test_a_new_kind_runs_on_spark_beside_tables_tells_its_status_and_is_replayed(
    spark, tmp_path: Path
) -> None:
    place = Place(tmp_path, spark)
    place.land("orders", 1)
    place.land("clicks", 1)
    place.run(lambda status: status.probes[0].taken >= 2 and not any(t.backlog for t in status.tables))
    assert place.numbers("orders") == place.numbers("clicks") == [1]
    last = place.said[-1]
    assert WarehouseStatus.from_json(last.to_json()) == last
    assert last.record(last.at_us)["probes"] == [{"name": NAME, "taken": last.probes[0].taken}]
    screen = Console(file=io.StringIO(), width=80)
    screen.print(render(last, last.at_us))
    assert f"{NAME}: {last.probes[0].taken} taken" in screen.file.getvalue()
    (log,) = (tmp_path / "warehouse" / "_freshline" / "logs").glob("*.jsonl")
    replays(log.read_text(encoding="utf-8"))
