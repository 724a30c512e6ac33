"""A node that drains does not wait for ever for others that will never be done."""

import os
import socket
from pathlib import Path

import pytest

from freshline.base.duration import SECOND
from freshline.definitions.load import load
from freshline.kernel.assembly.assemble import assemble
from freshline.live.nodes.node_drain import DrainedTables
from freshline.live.nodes.node_join import make_placement
from freshline.live.nodes.step_status import StepStatus
from freshline.live.status.status import Progress, WarehouseStatus
from freshline.live.tables.node_share import part_of
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.outputs import plan_outputs, with_outputs
from freshline.storage.control.control_folder import ControlFolder
from freshline_lab.campaigns.kills.node_kills import write_node_project

NOW = 1_000 * SECOND
STEP = StepStatus("high", "edge", SECOND, 0, 0, 0, 0, None)


def tell(control: ControlFolder, at: int, pid: int, *, opening: bool = False) -> None:
    starting, steps = (Progress("starting Spark"), ()) if opening else (None, (STEP,))
    WarehouseStatus(
        "sensors", "run", socket.gethostname(), pid, at, at, (), (), 0, starting=starting
    ).changed(steps=steps).write(control.status)


class Waiting:
    """The centre, which drains, and reads a table of the edge."""

    def __init__(self, folder: Path) -> None:
        warehouse = load(write_node_project(folder))
        self.kernel = assemble(with_outputs(make_plan(warehouse), plan_outputs(warehouse)), node="centre")
        part = part_of(warehouse, "centre", make_placement(warehouse).nodes)
        assert part.followed == {"high": "edge"}
        self.own, self.edge = ControlFolder(folder / "centre"), ControlFolder(folder / "edge")
        self.own.folder.mkdir()
        self.edge.folder.mkdir()
        self.tables = DrainedTables(part, self.own, {"edge": self.edge}, {})

    def after(self, seconds: int) -> str | None:
        return self.tables.waits_in_vain(self.kernel, NOW + seconds * SECOND)


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


def test_a_node_that_was_refused_or_never_started_is_waited_for_as_long_as_it_may_start_again(
    waiting: Waiting,
) -> None:
    assert [waiting.after(seconds) for seconds in (0, 60, 120)] == [None] * 3
    assert waiting.after(121) == (
        "node edge does not run, so the tables computed from its tables are not complete"
    )
    tell(waiting.edge, NOW + 122 * SECOND, os.getpid(), opening=True)  # another start
    assert [waiting.after(seconds) for seconds in (122, 300)] == [None] * 2
    tell(waiting.edge, NOW + 300 * SECOND, pid=2**22 + 1)  # it died
    assert [waiting.after(seconds) for seconds in (300, 420)] == [None] * 2
    assert waiting.after(421) is not None


def test_a_node_that_does_not_drain_is_never_done(waiting: Waiting) -> None:
    for seconds in (0, 121):
        tell(waiting.edge, NOW + seconds * SECOND, os.getpid())
        reason = waiting.after(seconds)
    assert reason == (
        "node edge runs without --drain, so the tables computed from its tables are not complete"
    )
    waiting.edge.drained.write_text("{}")
    assert waiting.after(121) is None


def test_who_drains_says_so_and_who_is_done_is_not_waited_for(waiting: Waiting) -> None:
    waiting.tables.announce()
    assert waiting.own.drained.read_text() == "{}"
    waiting.edge.drained.write_text('{"high": 0}')
    assert [waiting.after(seconds) for seconds in (0, 121)] == [None, None]
