"""The section `pools`: a number of tracks with one policy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema

from freshline.base.errors import NOWHERE, InputError, Place
from freshline.base.names import one_of
from freshline.definitions.language.document import shown
from freshline.definitions.language.policies import POLICIES, Held, PolicyName, as_written, with_option
from freshline.definitions.language.section import Path, Resolution, Section
from freshline.definitions.language.values import Duration, Entry, Factor, Flag, Given, Rate, Text, Tracks
from freshline.definitions.sections.nodes import NODES, node_named

Provisioning = Literal["worst", "average"]
Recovery = Literal["fastest", "together"]
Rescheduling = Literal["optimistic", "pessimistic", "permissive"]
Gains = Literal["fixed", "scheduled"]


@dataclass(frozen=True, slots=True)
class Pool:
    """A number of tracks with one policy."""

    name: str
    tracks: int
    policy: PolicyName = "edf"
    cluster_factor: Fraction = Fraction(10)  # prp only: periods within this factor share a cluster
    provisioning: Provisioning = "worst"  # adaptive policies only: the cost behind a table's share
    recovery: Recovery = "fastest"  # adaptive policies only: one late table at full speed, or all at once
    place: Place = NOWHERE
    blocking_us: int = 0  # for how long a batch, which is a job of several files, may block others
    preemptive: bool = False  # rm over queries only: an iteration is interrupted for a more urgent one
    rescheduling: Rescheduling = "optimistic"  # only if input is shed: when budgets are recomputed
    threshold: Fraction | None = None  # permissive only: the weighted error that triggers it
    gains: Gains = "fixed"  # rds-edf and rds-hef only: computed for a load of 100 %, or for the current work
    node: str | None = None  # the node of its tracks, in a warehouse with nodes

    def may_hold(self, held: Held) -> bool:
        """Whether it may hold tables, queries or classes. An update is never interrupted."""
        return held in POLICIES[self.policy].holds and not (held == "tables" and self.preemptive)

    @property
    def preempts(self) -> bool:
        """Whether a job may be interrupted for another one."""
        return self.preemptive or POLICIES[self.policy].preemptive

    @property
    def counted_blocking_us(self) -> int:
        """`blocking` as bounds count it: if no job starts before its release, there are no batches."""
        return self.blocking_us if "blocking" in POLICIES[self.policy].options else 0


def of_queries(pool: Pool) -> str:
    """Why a pool that cannot hold tables is one of queries."""
    return "`preemptive: true`" if pool.preemptive else f"`policy: {pool.policy}`"


def _policy(value: object) -> str:
    if isinstance(value, str) and value in POLICIES:
        return value
    choice = one_of(POLICIES).replace("`", "'")
    raise InputError(f"{shown(value)} is not a choice here", f"Write {choice}")


_PolicyName = Annotated[
    PolicyName, PlainValidator(_policy), WithJsonSchema({"type": "string", "enum": list(POLICIES)})
]


def _only_with(option: str) -> str:
    return f"Only with {as_written(with_option(option))}"


class PoolEntry(Entry):
    """A number of tracks with one policy."""

    model_config = ConfigDict(title="Pool")

    tracks: Tracks = Field(description="How many jobs run at once, one on each track.", examples=[2])
    policy: _PolicyName = Field("edf", description="The order in which waiting jobs start.")
    cluster_factor: Given[Factor] = Field(
        None,
        description=f"{_only_with('cluster_factor')}: periods within this factor share a cluster "
        "(default 10).",
    )
    provisioning: Given[Provisioning] = Field(
        None,
        description=f"{_only_with('provisioning')}: the cost from which a table's share of the "
        "tracks is computed. With `average` late tables recover faster, but bounds are only expected "
        "(default worst).",
    )
    recovery: Given[Recovery] = Field(
        None,
        description=f"{_only_with('recovery')}: `fastest` gives one late table all the spare "
        "capacity, `together` lets all of them recover at the same time, each more slowly (default "
        "fastest).",
    )
    blocking: Given[Duration] = Field(
        None,
        description=f"{_only_with('blocking')}: for how long a job that loads several files of a backlog may "
        "block others. Every bound counts it; `freshline plan` shows how much all targets allow (default 0).",
        examples=["1s"],
    )
    preemptive: Given[Flag] = Field(
        None,
        description=f"{_only_with('preemptive')}, in a pool of queries: whether an iteration is interrupted "
        "for a more urgent one (default false).",
    )
    rescheduling: Given[Rescheduling] = Field(
        None,
        description=f"{_only_with('rescheduling')}: when the amount that each query sheds is recomputed: "
        "`optimistic`: once in every longest stride; `pessimistic`: whenever an iteration ends; "
        "`permissive`: when the weighted error since the last time is above `threshold` (default "
        "optimistic).",
    )
    threshold: Given[Rate] = Field(
        None,
        description="Required for `rescheduling: permissive`, and only for it: the weighted error, which "
        "is the tuples lost in answers times the weight of their queries.",
        examples=[200000],
    )
    gains: Given[Gains] = Field(
        None,
        description=f"{_only_with('gains')}: the gains of the controllers are `fixed`, for a load of 100 %, "
        "or `scheduled`, for the work that was admitted last (default fixed).",
    )
    node: Given[Text] = Field(
        None, description="The node that its jobs run on, if there are `nodes` (default: the first)."
    )


def _resolve(resolution: Resolution) -> dict[str, Any]:
    entries = resolution.entries(POOLS)
    return {"pools": {name: _pool(resolution, name, entry) for name, entry in entries.items()}}


def _pool(resolution: Resolution, name: str, entry: PoolEntry) -> Pool:
    path = ("pools", name)
    given = {key: getattr(entry, key) for key in PoolEntry.model_fields if with_option(key)}
    options = {key: value for key, value in given.items() if value is not None}
    for key in options:
        if key not in POLICIES[entry.policy].options:
            what = f"it has no effect with the policy {entry.policy}"
            resolution.report((*path, key), what, f"Remove it, or set `policy: {with_option(key)[0]}`")
    _check_threshold(resolution, path, entry)
    if "blocking" in options:
        options["blocking_us"] = options.pop("blocking")
    nodes = resolution.names(NODES).all
    node = node_named(resolution, path, entry.node) or (nodes[0] if nodes else None)
    return Pool(name, entry.tracks, entry.policy, **options, place=resolution.place(path), node=node)


def _check_threshold(resolution: Resolution, path: Path, entry: PoolEntry) -> None:
    if "threshold" not in POLICIES[entry.policy].options:
        return
    if entry.rescheduling != "permissive" and entry.threshold is not None:
        remedy = "Remove it, or set `rescheduling: permissive`"
        resolution.report((*path, "threshold"), "it has an effect with permissive rescheduling only", remedy)
    elif entry.rescheduling == "permissive" and entry.threshold is None:
        remedy = "Add the weighted error that may come together, such as `threshold: 200000`"
        resolution.report(path, "`threshold` is missing, and permissive rescheduling goes by it", remedy)


def _from_record(record: dict[str, Any]) -> Pool:
    threshold = None if record.get("threshold") is None else Fraction(record["threshold"])
    factor = Fraction(record["cluster_factor"])
    return Pool(**{**record, "cluster_factor": factor, "threshold": threshold})


POOLS: Final = Section(
    "pools",
    PoolEntry,
    _resolve,
    _from_record,
    is_needed=True,
    unless="nodes",
    missing={
        "pools": "Add a pool, such as `pools: {updates: {tracks: 2}}`",
        "tracks": "Add how many jobs may run at once, such as `tracks: 2`",
    },
    description="The pools of tracks, by name.",
)
