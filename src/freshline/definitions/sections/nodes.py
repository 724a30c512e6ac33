"""The section `nodes`, Spark applications that run steps one at a time, and the `links` between them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from freshline.base.errors import NOWHERE, Place
from freshline.base.names import one_of
from freshline.definitions.language.section import Path, Resolution, Section
from freshline.definitions.language.values import Count, Entry, Given, PositiveNumber, Setting, Text

NodePolicy = Literal["edf", "fifo"]


@dataclass(frozen=True, slots=True)
class Node:
    """A Spark application with one track for steps."""

    name: str
    master: str = "local[1]"
    speed: Fraction = Fraction(1)  # a step takes its cost divided by the speed
    policy: NodePolicy = "edf"
    conf: Mapping[str, str] = field(default_factory=dict)  # Spark settings
    place: Place = NOWHERE
    cores: int | None = None  # of a cluster; None if unknown, or if its master is local


class NodeEntry(Entry):
    """A Spark application, such as one at the edge or a cluster: it runs steps, one at a time."""

    model_config = ConfigDict(title="Node")

    master: Given[Text] = Field(
        None, description="Spark's master (default `local[1]`).", examples=["local[1]", "spark://centre:7077"]
    )
    speed: Given[PositiveNumber] = Field(
        None, description="Its relative speed: a step takes its cost divided by the speed (default 1)."
    )
    policy: Given[NodePolicy] = Field(
        None,
        description="The order in which steps run: `edf`, the earliest deadline first, or `fifo`, the oldest "
        "file first (default edf). Deadlines are proven for `edf` only.",
    )
    cores: Given[Count] = Field(
        None,
        description="The cores of its cluster. A local master says how many it has, such as `local[4]`.",
        examples=[16],
    )
    conf: Given[dict[str, Setting]] = Field(
        None, description="Spark settings of this node.", examples=[{"spark.executor.memory": "2g"}]
    )


def node_named(resolution: Resolution, path: Path, given: str | None) -> str | None:
    """The node that a key names, if it exists; reports errors of the key."""
    names = resolution.names(NODES)
    if given is None or names.has(given):
        return given
    if not names.all:
        remedy = "Remove it, or define nodes, such as `nodes: {edge: {}, centre: {}}`"
        resolution.report((*path, "node"), "it has no effect without `nodes`", remedy)
    else:
        resolution.report((*path, "node"), f"there is no node `{given}`", names.remedy(given))
    return None


def reachable(links: tuple[tuple[str, str], ...] | None, nodes: Mapping[str, Any], start: str) -> set[str]:
    """The nodes that can read what is on `start`, also through other nodes."""
    if links is None:
        return set(nodes)
    found, ahead = {start}, [start]
    while ahead:
        near = ahead.pop()
        further = {end for begin, end in links if begin == near} - found
        found |= further
        ahead += further
    return found


def _resolve(resolution: Resolution) -> dict[str, Any]:
    entries = resolution.entries(NODES)
    nodes = {
        name: Node(
            name,
            entry.master or "local[1]",
            Fraction(1) if entry.speed is None else entry.speed,
            entry.policy or "edf",
            entry.conf or {},
            resolution.place(("nodes", name)),
            entry.cores,
        )
        for name, entry in entries.items()
    }
    _check_cores(resolution, nodes)
    for name in nodes:
        if name in resolution.fields["pools"]:
            what = f"the pool `{name}` has the same name"
            resolution.report(("nodes", name), what, "Rename one of the two")
    links = _links(resolution)
    _check_ways(resolution, nodes, links)
    return {"nodes": nodes, "links": links}


def is_local(master: str | None) -> bool:
    """Whether all of Spark is on this machine: `local[2]`, and `local-cluster[2,1,1024]` too."""
    return master is None or master.startswith("local")


def cores_of(master: str) -> int | None:
    """The cores that a local master names; None if it names none, or is a cluster.

    >>> cores_of("local[4]"), cores_of("local"), cores_of("local[2, 3]"), cores_of("local[*]")
    (4, 1, 2, None)
    """
    found = re.fullmatch(r"local(?:\[\s*(\d+)\s*(?:,\s*\d+\s*)?\])?", master.strip())
    return None if found is None else int(found[1] or 1)


def _check_cores(resolution: Resolution, nodes: Mapping[str, Node]) -> None:
    for name, node in nodes.items():
        if node.cores is not None and is_local(node.master):
            what = f"it has no effect with the master `{node.master}`"
            remedy = f"Write `master: local[{node.cores}]` instead; `cores` of the file are the machine's"
            resolution.report(("nodes", name, "cores"), what, remedy)


def _links(resolution: Resolution) -> tuple[tuple[str, str], ...] | None:
    names, given = resolution.names(NODES), resolution.links
    if given is None:
        return None
    if not names.all:
        resolution.report(("links",), "they have no effect without `nodes`", "Remove them, or define `nodes`")
    found: dict[tuple[str, str], None] = {}
    for place, link in enumerate(given):
        path = ("links", place)
        if len(link) != 2:
            remedy = "Write two nodes, such as [edge, centre]"
            resolution.report(path, f"a link of {len(link)} nodes", remedy)
            continue
        begin, end = link
        for node in link:
            if names.all and not names.has(node):
                resolution.report(path, f"there is no node `{node}`", names.remedy(node))
        if begin == end:
            resolution.report(path, f"it links `{begin}` with itself", "Remove it: it needs no link")
        elif (begin, end) in found:
            resolution.report(path, f"it links `{begin}` with `{end}` twice", "Remove one of the two")
        found[begin, end] = None
    return tuple(found)


def _check_ways(
    resolution: Resolution, nodes: Mapping[str, Node], links: tuple[tuple[str, str], ...] | None
) -> None:
    """Reports steps and tables that no node can run, because links do not lead there from all they read."""
    if links is None or not all(begin in nodes and end in nodes for begin, end in links):
        return
    ways = {name: reachable(links, nodes, name) for name in nodes}
    fields = resolution.fields
    possible: dict[str, set[str]] = {}
    for name in (*fields["step_order"], *fields["topological_order"]):
        stored = fields["steps"].get(name) or fields["tables"].get(name)
        if stored is None:
            continue
        allowed = stored.nodes if name in fields["steps"] else _nodes_of_pool(resolution, stored.pool)
        own = set(nodes) if allowed is None else set(allowed)
        for source in stored.sources:
            if source in possible:
                own &= {end for begin in possible[source] for end in ways[begin]}
        if own:
            possible[name] = own
            continue
        where = "one node" if allowed is None else f"the node {one_of(allowed)}"
        what = f"no `links` lead from all that it reads to {where}"
        resolution.report(("tables", name), what, "Add links, or move what it reads, or itself, with `node`")


def _nodes_of_pool(resolution: Resolution, name: str | None) -> tuple[str, ...] | None:
    pool = resolution.fields["pools"].get(name)
    return None if pool is None or pool.node is None else (pool.node,)


def _from_record(record: dict[str, Any]) -> Node:
    return Node(**{**record, "speed": Fraction(record["speed"])})


NODES: Final = Section(
    "nodes",
    NodeEntry,
    _resolve,
    _from_record,
    description="The Spark applications that run the tables of outputs with a `deadline`, by name.",
)
