"""Random files of whole warehouses: tables, queries, classes and outputs beside each other."""

from __future__ import annotations

import random
from typing import Final

from freshline.definitions.language.policies import POLICIES, PolicyName, adaptive_policies, policies_for
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.pools import Pool
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline_lab.campaigns.whole.cores import add_cores
from freshline_lab.campaigns.whole.entries import SCHEMA, Entry, number, sources_of, sql_over, us, written
from freshline_lab.campaigns.whole.step_graphs import add_steps
from freshline_lab.runs.warehouses import WarehouseShape, random_warehouse, with_random_blocking

_OF_TABLES: Final = policies_for("tables")
# Most tables are in pools with proven bounds.
_PROVEN: Final = [name for name in _OF_TABLES if POLICIES[name].proven]
_SHAPE: Final = WarehouseShape(
    tables_max=9,
    depth_max=3,
    tracks_max=3,
    pools_max=3,
    policies=(*_OF_TABLES, *_PROVEN, *adaptive_policies() * 3),
)
_ASKED: Final[tuple[PolicyName, ...]] = tuple(policies_for("classes"))


def whole_text(seed: int) -> str:
    """A file that `freshline plan` and `simulate` take."""
    return written(whole_document(seed))


def whole_document(seed: int) -> Entry:
    """The sections of a random file. Most have nodes with outputs, queries and classes; all have tables."""
    rng = random.Random(f"whole:{seed}")
    tables = with_random_blocking(random_warehouse(seed, _SHAPE), seed)
    document: Entry = {"name": f"whole_{seed}", "storage": "warehouse"}
    nodes = [f"node{number}" for number in range(rng.randint(1, 3))] if rng.random() < 0.8 else []
    if nodes:
        document["nodes"] = {name: _node(rng) for name in nodes}
        document |= _links(rng, nodes)
    document["pools"] = {name: _pool(rng, pool, nodes) for name, pool in tables.pools.items()}
    document["feeds"] = {}
    document["tables"] = {}
    _add_tables(rng, document, tables)
    if nodes:
        add_steps(rng, document, nodes)
        _let_tables_read_steps(rng, document)
    _drop_phases(document)
    _add_slices(rng, document)
    if rng.random() < 0.7:
        _add_queries(rng, document, nodes)
    if rng.random() < 0.7:
        _add_classes(rng, document, nodes)
    add_cores(rng, document)
    return document


def _node(rng: random.Random) -> Entry:
    entry: Entry = {}
    if rng.random() < 0.4:
        entry["speed"] = rng.choice((0.5, 1.5, 2, 3))
    if rng.random() < 0.04:
        entry["policy"] = "fifo"
    return entry


def _links(rng: random.Random, nodes: list[str]) -> Entry:
    """All pairs by default; otherwise a ring, maybe with a link back."""
    if len(nodes) == 1 or rng.random() < 0.6:
        return {}
    links = [[begin, end] for begin, end in zip(nodes, [*nodes[1:], nodes[0]], strict=True)]
    back = [nodes[1], nodes[0]]
    return {"links": links if rng.random() < 0.5 or back in links else [*links, back]}


def _pool(rng: random.Random, pool: Pool, nodes: list[str]) -> Entry:
    entry: Entry = {"tracks": pool.tracks, "policy": pool.policy}
    options = POLICIES[pool.policy].options
    if "blocking" in options and pool.blocking_us:
        entry["blocking"] = us(pool.blocking_us)
    if "recovery" in options and rng.random() < 0.5:
        entry["recovery"] = "together"
    if "provisioning" in options and rng.random() < 0.1:
        entry["provisioning"] = "average"
    if "gains" in options and rng.random() < 0.5:
        entry["gains"] = "scheduled"
    if "cluster_factor" in options and rng.random() < 0.5:
        entry["cluster_factor"] = 2
    if nodes:
        entry["node"] = rng.choice(nodes)
    return entry


def _add_tables(rng: random.Random, document: Entry, tables: Warehouse) -> None:
    for name, table in tables.tables.items():
        pool = document["pools"][table.pool]
        if table.feed is not None:
            document["feeds"][name] = _feed(rng, tables.feeds[name], pool.get("node"))
        sheds = "shed" in document["feeds"].get(name, {})
        document["tables"][name] = _table(rng, table, tables, pool["policy"], sheds)


def _feed(rng: random.Random, feed: Feed, node: str | None) -> Entry:
    assert feed.period_us is not None
    entry: Entry = {
        "arrival": feed.arrival,
        "period": us(feed.period_us),
        "schema": SCHEMA,
        "timestamp": "ts",
    }
    entry["rows"] = rng.choice((1, 20, 300, 5_000))
    if node is not None:
        entry["node"] = node
    if feed.arrival == "files":
        delays = {
            "phase": feed.phase_us,
            "jitter": feed.jitter_us,
            "timestamp_jitter": feed.timestamp_jitter_us,
        }
        entry |= {key: us(delay_us) for key, delay_us in delays.items() if delay_us}
        if rng.random() < 0.15:
            entry["lateness"] = us(rng.randint(1, feed.period_us))
        if rng.random() < 0.2:
            entry["shed"] = {
                "most": rng.choice((1, 50)),
                "per": us(max(1, feed.period_us // 4)),
                "value": "v",
            }
    return entry


def _table(rng: random.Random, table: Table, tables: Warehouse, policy: PolicyName, sheds: bool) -> Entry:
    entry: Entry = {"pool": table.pool, "cost": _cost(table.cost)}
    by_files = table.name in tables.released_by_files
    if table.feed is not None:
        entry["feed"] = table.feed
        may_discard = by_files and POLICIES[policy].discards and not sheds
        if may_discard and rng.random() < 0.4:
            entry["discard"] = {"key": "k", "value": "v"}
    else:
        entry |= {"period": us(table.period_us), "sql": sql_over(rng, table.sources)}
        if rng.random() < 0.2:
            entry["align"] = us(max(1, table.period_us // rng.choice((1, 2, 5))))
    if table.phase_us:
        entry["phase"] = us(table.phase_us)
    if rng.random() < 0.3:
        entry["target_lag"] = us(table.period_us * rng.randint(2, 12))
    if POLICIES[policy].adaptive:
        if rng.random() < 0.3:
            entry["weight"] = rng.choice((0, 0.5, 3, 10))
        if rng.random() < 0.15:
            entry["late_after"] = us(table.period_us * rng.randint(1, 10))
    return entry


def _cost(cost: Cost | None) -> Entry:
    assert cost is not None
    startup_us = max(1, cost.startup_us) if not cost.rate else cost.startup_us
    return {"startup": us(startup_us), "rate": number(cost.rate), "variability": number(cost.variability)}


def _let_tables_read_steps(rng: random.Random, document: Entry) -> None:
    """Some derived tables read a step too, or only steps."""
    tables: Entry = document["tables"]
    steps = [name for name, entry in tables.items() if "pool" not in entry]
    for entry in tables.values():
        if "pool" in entry and "sql" in entry and rng.random() < 0.5:
            read = [] if rng.random() < 0.3 else sources_of(entry["sql"])
            entry["sql"] = sql_over(rng, [*read, rng.choice(steps)])


def _drop_phases(document: Entry) -> None:
    """Tables with files upstream have no phase: what they read may have changed."""
    feeds, tables = document["feeds"], document["tables"]
    by_files: dict[str, bool] = {}

    def reads_files(name: str) -> bool:
        if name not in by_files:
            entry = tables[name]
            by_files[name] = (
                feeds[entry["feed"]].get("arrival", "files") == "files"
                if "feed" in entry
                else any(reads_files(source) for source in sources_of(entry["sql"]))
            )
        return by_files[name]

    for name, entry in tables.items():
        if reads_files(name):
            entry.pop("phase", None)


def _add_slices(rng: random.Random, document: Entry) -> None:
    for entry in document["tables"].values():
        if rng.random() < 0.6:
            entry["slices"] = rng.choice(({}, {"by": "k"}, {"by": "k"}))
            if "feed" in entry and rng.random() < 0.2:
                entry["slices"] = {**entry["slices"], "outliers": "v"}


def _add_queries(rng: random.Random, document: Entry, nodes: list[str]) -> None:
    policy = rng.choice(("lrm", "lrm", "lrm-paper", "rm"))
    pool: Entry = {"tracks": rng.randint(1, 2), "policy": policy}
    if policy == "rm":
        pool["preemptive"] = rng.random() < 0.5
    else:
        pool["rescheduling"] = rng.choice(("optimistic", "pessimistic", "permissive"))
        if pool["rescheduling"] == "permissive":
            pool["threshold"] = rng.choice((100, 10_000))
    if nodes:
        pool["node"] = rng.choice(nodes)
    sliced = [name for name, entry in document["tables"].items() if "slices" in entry]
    by_k = [name for name in sliced if "by" in document["tables"][name]["slices"]]
    if sliced:
        document["pools"]["answers"] = pool
        count = rng.randint(1, 5)
        document["queries"] = {f"q{place}": _query(rng, sliced, by_k) for place in range(count)}


def _query(rng: random.Random, tables: list[str], by_k: list[str]) -> Entry:
    stride_us = rng.choice((1, 2, 3, 5, 8)) * 1_000_000
    one = rng.choice(tables)
    kinds = [f"SELECT k, sum(v) AS v FROM {one} GROUP BY k", f"SELECT ts, k, v FROM {one} WHERE v > 10"]
    if len(by_k) > 1:
        left, right = rng.sample(by_k, 2)
        kinds.append(f"SELECT a.k, count(*) AS n FROM {left} a JOIN {right} b ON a.k = b.k GROUP BY a.k")
    entry: Entry = {
        "sql": rng.choice(kinds),
        "pool": "answers",
        "window": us(stride_us * rng.choice((1, 2, 5))),
        "stride": us(stride_us),
        "weight": rng.randint(1, 10),
    }
    if rng.random() < 0.3:
        entry["deadline"] = us(stride_us * rng.randint(5, 10) // 10)
    if rng.random() < 0.3:
        entry["keep_least"] = rng.choice((0.05, 0.3))
    if rng.random() < 0.6:
        entry["cost"] = {"startup": us(rng.randint(0, stride_us // 10)), "rate": rng.choice((0.05, 0.2, 0.5))}
    return entry


def _add_classes(rng: random.Random, document: Entry, nodes: list[str]) -> None:
    """Beside tables where a pool can hold both; otherwise in a pool of their own."""
    first = nodes[0] if nodes else None  # where requests arrive
    pools = document["pools"].items()
    shared = [name for name, pool in pools if pool["policy"] in _ASKED and pool.get("node") == first]
    if shared and rng.random() < 0.7:
        pool = rng.choice(shared)
    else:
        pool = "asked"
        document["pools"][pool] = {"tracks": rng.randint(1, 2), "policy": rng.choice(_ASKED)}
    names = ("operators", "analysts", "guests")[: rng.randint(1, 3)]
    document["classes"] = {name: {"error": rng.choice((0.2, 0.3, 0.5)), "pool": pool} for name in names}
