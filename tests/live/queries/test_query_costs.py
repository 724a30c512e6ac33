"""What is known of a query's costs, and how that is given up where it keeps the query from being read."""

from pathlib import Path
from typing import Any

import pytest

from freshline.definitions.load import loads
from freshline.live.queries.query_costs import QueryCosts
from freshline.planning.costs.iterations import PastPart
from freshline.storage.control.history import History

PROJECT = """
name: shop
pools: {updates: {tracks: 1}, queries: {tracks: 1, policy: lrm}}
feeds: {orders: {path: landing, format: csv, schema: "ts timestamp, item string", timestamp: ts, period: 10s}}
tables: {orders: {feed: orders, slices: {}, cost: {startup: 1s}}}
queries:
  n: {sql: "SELECT count(*) AS n FROM orders", window: 1h, stride: 2s, pool: queries, cost: {startup: 1s}}
"""


@pytest.fixture
def book(tmp_path: Path) -> Any:
    with History(tmp_path / "history.sqlite") as history:
        yield QueryCosts(history, loads(PROJECT).queries["n"])


def answer(number: int, part_us: int, *slices: int) -> list[PastPart]:
    read = [PastPart(number, part_us + 1_000 * each, each, 100 * each) for each in slices]
    return [*read, PastPart(number, 1_000, 0, 1)]


def test_a_query_that_seems_too_dear_to_be_read_looks_and_learns_that_it_is_not(book):
    for number in range(5):  # of a Spark that is still cold
        book.enter(answer(number, 900_000, 16, 48, 192))
    assert book.fitted.part_us >= 900_000
    looked = []
    for number in range(5, 2_000):
        slices = book.looks()
        if slices:
            looked.append(slices)
        book.enter(answer(number, 100_000, *([slices] if slices else [])))
    assert looked == [2, 8, 2, 8, 2, 8, 2, 8, 2, 8]
    assert book.fitted.part_us < 500_000


def test_a_query_that_is_read_does_not_look_and_forgets_nothing(book):
    for number in range(20):
        book.enter(answer(number, 100_000, 16, 240))
        assert not book.looks()
    assert book.fitted.iterations == 19  # the first one has Spark compile
