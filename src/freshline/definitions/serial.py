"""A warehouse as plain JSON and back, so that a journal carries what it was made with."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Any

from freshline.definitions.warehouse import Cost, Feed, Landing, Pool, Table, Warehouse


def to_record(warehouse: Warehouse) -> dict[str, Any]:
    """Everything, with fractions as text, but for the places: a run does not depend on its file's path."""
    record = asdict(warehouse)
    for section in ("pools", "feeds", "tables"):
        for entry in record[section].values():
            del entry["place"]
    record["topological_order"] = list(warehouse.topological_order)
    record["released_by_files"] = sorted(warehouse.released_by_files)
    return _plain(record)  # type: ignore[no-any-return]


def from_record(record: dict[str, Any]) -> Warehouse:
    """The warehouse that was written; it stands nowhere in a file."""
    return Warehouse(
        name=record["name"],
        storage=record["storage"],
        pools={name: _pool(entry) for name, entry in record["pools"].items()},
        feeds={name: _feed(entry) for name, entry in record["feeds"].items()},
        tables={name: _table(entry) for name, entry in record["tables"].items()},
        topological_order=tuple(record["topological_order"]),
        released_by_files=frozenset(record["released_by_files"]),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, Fraction) else value


def _pool(entry: dict[str, Any]) -> Pool:
    return Pool(**{**entry, "cluster_factor": Fraction(entry["cluster_factor"])})


def _feed(entry: dict[str, Any]) -> Feed:
    return Feed(**{**entry, "landing": Landing(**entry["landing"])})


def _table(entry: dict[str, Any]) -> Table:
    cost = entry["cost"]
    if cost is not None:
        cost = Cost(cost["startup_us"], Fraction(cost["rate"]), Fraction(cost["variability"]))
    weight = Fraction(entry.get("weight", 1))
    return Table(**{**entry, "sources": tuple(entry["sources"]), "cost": cost, "weight": weight})
