"""Edited files, read in the thread that sends them and decided in another."""

import threading
import time
from dataclasses import replace

import pytest

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.live.queries.edit_applier import EditApplier, of_node
from patience import PATIENCE_S

FILE = """\
name: shop
pools: {updates: {tracks: 2}, answers: {tracks: 1, policy: lrm}}
feeds:
  orders: {path: landing/orders, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 10s}
tables:
  orders: {feed: orders, cost: {startup: 5s}, slices: {by: n}}
"""
QUERY = """\
queries:
  sums: {sql: "SELECT n, count(*) AS rows FROM orders GROUP BY n", window: 1m, stride: 10s}
"""


def applying(decide, posted: list) -> EditApplier:
    return EditApplier(loads(FILE), posted.append, lambda edited: dict(edited.queries), decide)


def test_the_queries_reach_whoever_decides_and_the_answer_comes_back() -> None:
    posted = []
    decided = {"admitted": ["sums"]}
    asked = applying(lambda queries, now: decided | {"of": sorted(queries), "at": now}, posted)

    def drive() -> None:
        while not posted:
            time.sleep(0.01)
        assert posted[0].event(None, 5) is None

    thread = threading.Thread(target=drive)
    thread.start()
    assert asked.apply(FILE + QUERY, PATIENCE_S) == {"admitted": ["sums"], "of": ["sums"], "at": 5}
    thread.join(PATIENCE_S)


NODES = FILE.replace("name: shop", "name: shop\nnodes: {edge: {}, centre: {}}").replace(
    "policy: lrm}", "policy: lrm}, far: {tracks: 1, policy: lrm, node: centre}"
)
FAR = QUERY.replace("stride: 10s", "stride: 10s, pool: far")


def test_on_a_node_its_own_queries_change_and_those_of_others_are_none_of_its_business() -> None:
    running = loads(NODES.replace("period: 10s", "period: 10s, node: edge") + FAR)
    edited = replace(running, queries=running.queries | {"more": loads(FILE + QUERY).queries["sums"]})
    edited = replace(edited, queries=edited.queries | {"more": replace(edited.queries["more"], name="more")})
    assert [*of_node(running, edited, "edge").queries] == ["more"]
    assert of_node(running, edited, None) is edited
    for one, other in ((running, replace(running, queries={})), (replace(running, queries={}), running)):
        with pytest.raises(
            InputError, match="sums is in the pool far on node centre: only those of node edge"
        ):
            of_node(one, other, "edge")


def test_a_file_that_is_wrong_or_differs_elsewhere_reaches_nobody() -> None:
    posted = []
    asked = applying(lambda queries, now: {}, posted)
    wrong = [
        ("", "the file is empty"),
        (FILE + QUERY.replace("10s", "0s"), "queries.sums.stride"),
        (FILE + QUERY.replace("GROUP BY n", "GROUP BY n HAVING n > 1"), "it has a HAVING"),
        (FILE.replace("tracks: 2", "tracks: 3") + QUERY, "`pools.updates.tracks` differs"),
        (FILE.replace("by: n", "by: ts"), "`tables.orders.slices` differs"),
        (
            FILE.replace("tracks: 1, policy: lrm", "tracks: 1, policy: lrm-paper"),
            "`pools.answers.policy` differs",
        ),
        (FILE.replace("period: 10s", "period: 10s, rows: 5"), "`feeds.orders.rows` differs"),
        (FILE.replace("name: shop", "name: shop\nstorage: there"), "`storage` differs"),
        (
            FILE.replace("name: shop", "name: shops").replace("startup: 5s", "startup: 1s"),
            "`name`, `tables.orders.cost` differ",
        ),
    ]
    for text, said in wrong:
        with pytest.raises(InputError) as found:
            asked.apply(text)
        assert said in str(found.value)
    assert posted == []


def test_who_waits_is_let_go_when_nobody_decides_and_nothing_comes_of_it_later() -> None:
    posted, decided = [], []
    asked = applying(lambda queries, now: decided.append(now), posted)
    with pytest.raises(TimeoutError):
        asked.apply(FILE, timeout_s=0.05)
    posted[0].event(None, 5)
    assert decided == []


def test_who_waits_when_the_run_ends_is_let_go_and_nobody_else_waits() -> None:
    posted, raised = [], []
    asked = applying(lambda queries, now: {}, posted)

    def ask() -> None:
        with pytest.raises(TimeoutError) as found:
            asked.apply(FILE, PATIENCE_S)
        raised.append(found)

    thread = threading.Thread(target=ask)
    thread.start()
    while not posted:
        time.sleep(0.01)
    asked.close()
    thread.join(PATIENCE_S)
    assert len(raised) == 1
    with pytest.raises(TimeoutError):
        asked.apply(FILE, PATIENCE_S)


def test_what_cannot_be_decided_is_told_and_ends_nothing() -> None:
    posted = []

    def decide(queries, now):
        raise InputError("there is no such pool", "Name another")

    asked = applying(decide, posted)
    thread = threading.Thread(target=lambda: [time.sleep(0.01) for _ in iter(lambda: not posted, False)])
    thread.start()

    def drive() -> None:
        thread.join(PATIENCE_S)
        posted[0].event(None, 5)

    driver = threading.Thread(target=drive)
    driver.start()
    with pytest.raises(InputError, match="no such pool"):
        asked.apply(FILE, PATIENCE_S)
    driver.join(PATIENCE_S)
