"""A warehouse as a record, and back."""

import json
from dataclasses import replace

from freshline.base.duration import HOUR, SECOND
from freshline.base.errors import NOWHERE
from freshline.definitions.load import loads
from freshline.definitions.serial import from_record, to_record
from freshline.definitions.warehouse import Warehouse

TEXT = """\
name: network
pools:
  updates: {tracks: 2, policy: prp, cluster_factor: 2.5}
  recovering: {tracks: 1, policy: aus, provisioning: average, recovery: together, blocking: 1s}
feeds:
  packets: {period: 5m, jitter: 10s, lateness: 2s}
tables:
  packets: {feed: packets, pool: updates, target_lag: 20m, cost: {startup: 3s, rate: 0.1, variability: 0.2}}
  traffic: {sources: [packets], pool: recovering, period: 15m, late_after: 1h, weight: 0.3}
"""


def placeless(warehouse: Warehouse) -> Warehouse:
    return replace(
        warehouse,
        pools={name: replace(pool, place=NOWHERE) for name, pool in warehouse.pools.items()},
        feeds={name: replace(feed, place=NOWHERE) for name, feed in warehouse.feeds.items()},
        tables={name: replace(table, place=NOWHERE) for name, table in warehouse.tables.items()},
    )


def test_a_record_holds_everything_but_the_places():
    warehouse = loads(TEXT)
    record = json.loads(json.dumps(to_record(warehouse)))
    assert from_record(record) == placeless(warehouse) != warehouse
    assert record["pools"]["recovering"] == {
        "name": "recovering",
        "tracks": 1,
        "policy": "aus",
        "cluster_factor": "10",
        "provisioning": "average",
        "recovery": "together",
        "blocking_us": SECOND,
        "preemptive": False,
        "rescheduling": "optimistic",
        "threshold": None,
        "gains": "fixed",
        "node": None,
    }
    assert (record["tables"]["traffic"]["late_after_us"], record["tables"]["traffic"]["weight"]) == (
        HOUR,
        "3/10",
    )


def test_a_record_from_before_there_was_recovery_can_be_read():
    warehouse = loads(TEXT)
    record = to_record(warehouse)
    for pool in record["pools"].values():
        del pool["provisioning"], pool["recovery"], pool["blocking_us"]
    for table in record["tables"].values():
        del table["late_after_us"], table["weight"]
    read = from_record(record)
    assert (read.pools["recovering"].provisioning, read.pools["recovering"].recovery) == ("worst", "fastest")
    assert (read.tables["traffic"].late_after_us, read.tables["traffic"].weight) == (None, 1)


def test_the_same_text_gives_the_same_record_wherever_its_file_is():
    assert to_record(loads(TEXT, "one.yml")) == to_record(loads("\n\n" + TEXT, "/else/where/two.yml"))
