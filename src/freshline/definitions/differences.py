"""The differences between the warehouses of two files, by the names in the files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from freshline.definitions.language.section import Section
from freshline.definitions.warehouse import SECTIONS, Warehouse

# Fields derived from the sections; they differ only if a section does.
_WORKED_OUT: Final = {"topological_order", "released_by_files", "step_order"}


def differences(one: Warehouse, other: Warehouse, but: Collection[str] = ()) -> list[str]:
    """The differences outside the sections `but`: `tables.traffic.period`, or `feeds.clicks` if one lacks it.

    The order of entries and their positions in a file do not count.
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
        # Report what a user wrote, not what follows from it.
        yield from (f"{path}.{key}" for key in [key for key in differing if key in keys] or differing)


def _fields(one: Any, other: Any, written: Collection[str]) -> Iterator[str]:
    """The fields in which two records differ; descends into parts that users do not write as one value."""
    for each in fields(one):
        ours, theirs = getattr(one, each.name), getattr(other, each.name)
        if each.name == "place" or ours == theirs:
            continue
        if each.name not in written and is_dataclass(ours) and type(ours) is type(theirs):
            yield from _fields(ours, theirs, written)
        else:
            yield each.name
