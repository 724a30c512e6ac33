"""What differs between two files' warehouses, by the names that a user gave it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from freshline.definitions.language.section import Section
from freshline.definitions.warehouse import SECTIONS, Warehouse

# What is worked out from the sections, and differs only with them.
_WORKED_OUT: Final = {"topological_order", "released_by_files", "step_order"}


def differences(one: Warehouse, other: Warehouse, but: Collection[str] = ()) -> list[str]:
    """What differs outside the sections `but`: `tables.traffic.period`, or `feeds.clicks` that one lacks.

    The order of entries in a file is no difference, nor is where they stand.
    """
    found: list[str] = []
    for each in fields(Warehouse):
        if each.name in but or each.name in _WORKED_OUT or each.name == "steps":
            continue
        ours, theirs = getattr(one, each.name), getattr(other, each.name)
        if each.name == "tables":
            found += _in_section(SECTIONS["tables"], one.stored, other.stored)
        elif each.name in SECTIONS:
            found += _in_section(SECTIONS[each.name], ours, theirs)
        elif ours != theirs:
            found.append(each.name)
    return found


def _in_section(
    section: Section[Any, Any], one: Mapping[str, Any], other: Mapping[str, Any]
) -> Iterator[str]:
    written = {key: field.alias or key for key, field in section.entry.model_fields.items()}
    keys = set(written.values())
    for name in [*one, *(name for name in other if name not in one)]:
        path = f"{section.name}.{name}"
        if name not in one or name not in other or type(one[name]) is not type(other[name]):
            yield path
            continue
        differing = [
            written.get(each, each.removesuffix("_us")) for each in _fields(one[name], other[name], written)
        ]
        # What a user wrote, rather than what became different with it.
        yield from (f"{path}.{key}" for key in [key for key in differing if key in keys] or differing)


def _fields(one: Any, other: Any, written: Collection[str]) -> Iterator[str]:
    """The fields in which two records differ. A part that users do not write as such is looked into."""
    for each in fields(one):
        ours, theirs = getattr(one, each.name), getattr(other, each.name)
        if each.name == "place" or ours == theirs:
            continue
        if each.name not in written and is_dataclass(ours) and type(ours) is type(theirs):
            yield from _fields(ours, theirs, written)
        else:
            yield each.name
