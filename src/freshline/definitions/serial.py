"""Converts a warehouse to plain JSON and back, so that a journal contains its own warehouse."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from freshline.definitions.sections.steps import step_from_record, step_record
from freshline.definitions.warehouse import SECTIONS, Warehouse


def to_record(warehouse: Warehouse) -> dict[str, Any]:
    """The warehouse with fractions as text, without positions: a run does not depend on its file's path."""
    record: dict[str, Any] = {"name": warehouse.name, "storage": warehouse.storage, "cores": warehouse.cores}
    for section in SECTIONS.values():
        entries = getattr(warehouse, section.name)
        record[section.name] = {name: section.to_record(entry) for name, entry in entries.items()}
        for entry in record[section.name].values():
            del entry["place"]
    record["steps"] = {name: step_record(step) for name, step in warehouse.steps.items()}
    record["step_order"] = list(warehouse.step_order)
    record["links"] = None if warehouse.links is None else [list(link) for link in warehouse.links]
    record["topological_order"] = list(warehouse.topological_order)
    record["released_by_files"] = sorted(warehouse.released_by_files)
    return _plain(record)  # type: ignore[no-any-return]


def from_record(record: dict[str, Any]) -> Warehouse:
    """The warehouse of a record; it has no position in a file."""
    return Warehouse(
        name=record["name"],
        storage=record["storage"],
        cores=record.get("cores"),
        **{
            section.name: {
                name: section.from_record(entry) for name, entry in record.get(section.name, {}).items()
            }
            for section in SECTIONS.values()
        },
        steps={name: step_from_record(step) for name, step in record.get("steps", {}).items()},
        step_order=tuple(record.get("step_order", ())),
        links=None if record.get("links") is None else tuple((begin, end) for begin, end in record["links"]),
        topological_order=tuple(record["topological_order"]),
        released_by_files=frozenset(record["released_by_files"]),
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, Fraction) else value
