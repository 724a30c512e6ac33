"""What differs between two files, by the names that their user gave it."""

import pytest

from freshline.definitions.differences import differences
from freshline.definitions.load import loads

FILE = """\
name: shop
pools: {updates: {tracks: 2}}
feeds:
  orders: {path: landing/orders, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 10s}
  clicks: {period: 10s}
tables:
  orders: {feed: orders, cost: {startup: 5s}}
  clicks: {feed: clicks}
  sums: {sql: "SELECT ts, sum(n) AS n FROM orders GROUP BY ts", period: 10s, target_lag: 1m}
"""


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("name: shop", "name: shops", ["name"]),
        ("name: shop", "name: shop\nstorage: elsewhere", ["storage"]),
        ("tracks: 2", "tracks: 3", ["pools.updates.tracks"]),
        ("tracks: 2", "tracks: 2, policy: rm", ["pools.updates.policy"]),
        ("landing/orders", "landing/other", ["feeds.orders.path"]),
        ("n long", "n int", ["feeds.orders.schema"]),
        ("timestamp: ts, ", "timestamp: ts, lateness: 1s, ", ["feeds.orders.lateness"]),
        ("startup: 5s", "startup: 6s", ["tables.orders.cost"]),
        ("target_lag: 1m", "target_lag: 2m", ["tables.sums.target_lag"]),
        ("SELECT ts, sum(n)", "SELECT ts, max(n)", ["tables.sums.sql"]),
        ("clicks: {period: 10s}", "clicks: {period: 20s}", ["feeds.clicks.period", "tables.clicks.period"]),
        ("  clicks: {feed: clicks}\n", "", ["tables.clicks"]),
        ("  sums:", "  more: {feed: clicks}\n  sums:", ["tables.more"]),
        ("name: shop\n", "# a comment\n\nname: shop\n", []),
        ("  clicks: {feed: clicks}\n  sums", "  sums", ["tables.clicks"]),
    ],
)
def test_each_difference_is_named_by_section_entry_and_key(before: str, after: str, found) -> None:
    assert before in FILE
    assert differences(loads(FILE), loads(FILE.replace(before, after, 1))) == found


def test_a_section_that_may_differ_is_not_looked_at() -> None:
    other = loads(FILE.replace("startup: 5s", "startup: 6s").replace("tracks: 2", "tracks: 3"))
    assert differences(loads(FILE), other, but=("tables",)) == ["pools.updates.tracks"]


def test_the_order_in_a_file_is_no_difference() -> None:
    lines = FILE.splitlines(keepends=True)
    assert differences(loads(FILE), loads("".join([*lines[:6], lines[7], lines[6], *lines[8:]]))) == []
