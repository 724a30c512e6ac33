"""Nodes that run the same definitions, and nodes that do not."""

from pathlib import Path

import pytest

from freshline.definitions.errors import InputError
from freshline.definitions.load import loads
from freshline.live.agreement import agree, digest_of
from freshline.storage.layout import Layout
from freshline.storage.lease import Identity, Lease

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


def test_a_node_is_refused_while_another_runs_with_other_definitions(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    edge, centre = layout.control("edge"), layout.control("centre")
    for control in (edge, centre):
        layout.prepare(control)
    identity = Identity.mine("run")
    lease = Lease.acquire(edge.lease, identity)
    agree(edge, [centre], "old", identity)
    agree(centre, [edge], "old", identity)
    with pytest.raises(InputError, match="node edge runs with other definitions than this one"):
        agree(centre, [edge], "new", identity)
    lease.release()
    agree(centre, [edge], "new", identity)
