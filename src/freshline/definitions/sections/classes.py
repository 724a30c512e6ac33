"""The section `classes`: kinds of requests, the most important first, with the precision of their answers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from pydantic import ConfigDict, Field

from freshline.base.errors import NOWHERE, Place
from freshline.base.names import one_of
from freshline.definitions.language.policies import as_written, policies_for
from freshline.definitions.language.section import Path, Resolution, Section
from freshline.definitions.language.values import (
    Entry,
    Given,
    PositiveDuration,
    PositiveNumber,
    PositiveShare,
    Rate,
    Text,
)
from freshline.definitions.sections.nodes import NODES
from freshline.definitions.sections.pools import POOLS, Pool
from freshline.definitions.sections.queries import QUERIES
from freshline.definitions.sections.tables import TABLES

# The longest part of a request in time: a live run chooses the number of slices accordingly.
PART_MOST_US: Final = 500_000
_A_POOL: Final = (
    f"Name a pool with {as_written(policies_for('classes'))}, such as "
    "`main: {tracks: 1, policy: rds-quota}`"
)


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """Requests of one importance, with the precision of their answers (paper 003, section 4.1)."""

    name: str
    pool: str
    error: Fraction  # ate_r: the average error that answers may have
    data_error_factor: Fraction = Fraction(1)  # the weight of errors of the data that it reads
    settling_us: int = 60_000_000  # the time after a change of load until the error is at its target again
    overshoot: Fraction = Fraction(35, 100)  # how far the error may exceed the target meanwhile, as a share
    place: Place = NOWHERE


class ClassEntry(Entry):
    """Requests of one importance. Classes are in the order of importance, the highest first."""

    model_config = ConfigDict(title="Service class")

    error: PositiveShare = Field(
        description="The average error that answers may have: 0.3 means that three in ten parts may be "
        "missing. The first part, which every answer has, does not count.",
        examples=[0.3],
    )
    data_error_factor: Given[PositiveNumber] = Field(
        None,
        description="The weight of data errors for its requests: 1/ξ if a value may be wrong by the share ξ "
        "(default 1).",
    )
    settling_us: Given[PositiveDuration] = Field(
        None,
        alias="settling",
        description="How long after a change of load the error may be above `error` (default 60s).",
    )
    overshoot: Given[Rate] = Field(
        None, description="How far above `error` it may be meanwhile, as a share of `error` (default 0.35)."
    )
    pool: Given[Text] = Field(
        None, description="The pool that answers it (default: the only one that can hold classes)."
    )


def _resolve(resolution: Resolution) -> dict[str, Any]:
    entries = resolution.entries(CLASSES)
    made = {name: _class(resolution, name, entry) for name, entry in entries.items()}
    return {"classes": {name: each for name, each in made.items() if each is not None}}


def _class(resolution: Resolution, name: str, entry: ClassEntry) -> ServiceClass | None:
    path = ("classes", name)
    _check_name(resolution, path, name)
    pool = _pool_of(resolution, path, entry)
    if pool is None:
        return None
    _check_node(resolution, path, resolution.records(POOLS).get(pool))
    given = {
        key: getattr(entry, key)
        for key in ("data_error_factor", "settling_us", "overshoot")
        if getattr(entry, key) is not None
    }
    return ServiceClass(name, pool, entry.error, **given, place=resolution.place(path))


def _check_name(resolution: Resolution, path: Path, name: str) -> None:
    sections: tuple[tuple[str, Section[Any, Any]], ...] = (("table", TABLES), ("query", QUERIES))
    for kind, section in sections:
        other = resolution.names(section).find(name)
        if other is not None:
            line = resolution.place((section.name, other)).line
            what = f"it has the same name as the {kind} `{other}` of line {line}"
            resolution.report(path, what, "Rename one of the two")


def _pool_of(resolution: Resolution, path: Path, entry: ClassEntry) -> str | None:
    names, pools = resolution.names(POOLS), resolution.records(POOLS)
    if not names.all:
        return None  # the missing pool is an error of its own
    if entry.pool is None:
        able = [name for name, pool in pools.items() if pool.may_hold("classes")]
        if len(able) == 1:
            return able[0]
        if able:
            what = f"`pool` is missing, and there are {len(able)} pools that can hold classes"
            resolution.report(path, what, f"Add `pool` with {one_of(able)}")
        elif len(pools) == len(names.all):
            resolution.report(path, "no pool can hold classes", _A_POOL)
        return None
    pool = pools.get(entry.pool)
    if not names.has(entry.pool):
        resolution.report((*path, "pool"), f"there is no pool `{entry.pool}`", names.remedy(entry.pool))
    elif pool is not None and not pool.may_hold("classes"):
        what = f"the pool `{pool.name}` has `policy: {pool.policy}`, which holds no classes"
        resolution.report((*path, "pool"), what, _A_POOL)
    return entry.pool


def _check_node(resolution: Resolution, path: Path, pool: Pool | None) -> None:
    """Clients send requests to the first node: it serves all of them, and reads all tables."""
    nodes = resolution.names(NODES).all
    if pool is not None and nodes and pool.node not in (None, nodes[0]):
        what = f"its pool `{pool.name}` is on the node `{pool.node}`, and requests arrive on `{nodes[0]}`"
        resolution.report(path, what, f"Put it into a pool with `node: {nodes[0]}`, which reads all tables")


def _from_record(record: dict[str, Any]) -> ServiceClass:
    exact = {key: Fraction(record[key]) for key in ("error", "data_error_factor", "overshoot")}
    return ServiceClass(**{**record, **exact})


CLASSES: Final = Section(
    "classes",
    ClassEntry,
    _resolve,
    _from_record,
    missing={"error": "Add the average error that answers may have, such as `error: 0.3`"},
    description="The service classes, the most important first.",
)
