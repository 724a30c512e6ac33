"""Nodes that run the same definitions, and nodes that do not."""

from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.live.nodes.same_definitions import agree, digest_of
from freshline.live.run.heartbeat import sole_writer
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.lease import Identity, Lease, StorageInUse

FILE = """
name: shop
storage: warehouse
pools: {updates: {tracks: 1}}
feeds: {sales: {arrival: continuous}}
tables: {sales: {feed: sales, period: 60s, cost: {startup: 1s}}}
"""


def test_comments_and_spelling_make_no_other_definitions() -> None:
    assert digest_of(loads(FILE)) == digest_of(loads("# the shop\n" + FILE.replace("60s", "1 minute")))
    assert digest_of(loads(FILE)) != digest_of(loads(FILE.replace("60s", "61s")))


@pytest.fixture
def layout(tmp_path: Path) -> StorageLayout:
    layout = StorageLayout(tmp_path)
    for node in ("edge", "centre"):
        layout.prepare(layout.control(node))
    return layout


def test_a_node_is_refused_while_another_runs_with_other_definitions(layout: StorageLayout) -> None:
    edge, centre = layout.control("edge"), layout.control("centre")
    first, second = Identity.mine("first"), Identity.mine("second")
    lease = Lease.acquire(edge.lease, first)
    agree(edge, [centre], "old", first)
    agree(centre, [edge], "old", second)
    with pytest.raises(InputError, match="node edge runs with other definitions than this one"):
        agree(centre, [edge], "new", second)
    lease.release()
    agree(centre, [edge], "new", second)


def test_what_the_last_run_of_a_node_said_is_not_held_against_its_next(layout: StorageLayout) -> None:
    """Both are started again with a new file, and one is the quicker by a little."""
    edge, centre = layout.control("edge"), layout.control("centre")
    agree(edge, [centre], "old", Identity.mine("last"))
    next_run, other = Identity.mine("next"), Identity.mine("other")
    Lease.acquire(edge.lease, next_run)
    agree(centre, [edge], "new", other)
    Lease.acquire(centre.lease, other)
    agree(edge, [centre], "new", next_run)
    with pytest.raises(InputError, match="node centre runs with other definitions"):
        agree(edge, [centre], "newer", next_run)


@pytest.mark.parametrize(("running", "nodes"), [("edge", ["core"]), ("edge", []), (None, ["core", "edge"])])
def test_a_run_of_a_node_that_the_definitions_do_not_know_is_not_joined(
    layout: StorageLayout, running: str | None, nodes: list[str]
) -> None:
    layout.prepare(layout.control(running))
    lease = Lease.acquire(layout.control(running).lease, Identity.mine("theirs"))
    with (
        pytest.raises(StorageInUse, match=r"in use by other definitions \(run theirs"),
        sole_writer(layout, nodes, "rebuild"),
    ):
        pass
    lease.release()
    with sole_writer(layout, nodes, "rebuild"):
        pass
