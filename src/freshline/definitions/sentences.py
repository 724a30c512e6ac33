"""Turns the errors that pydantic finds in a file into sentences for its author."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from freshline.base.errors import InputError, about
from freshline.base.names import close_match, one_of
from freshline.definitions.file import WarehouseFile
from freshline.definitions.language.document import Document, kind_of, shown
from freshline.definitions.language.section import Path
from freshline.definitions.language.values import Entry
from freshline.definitions.warehouse import SECTIONS

_EXPECTED: Final = {
    "string_type": ("text", "Put it in quotes if it is meant as text"),
    "list_type": ("a list", "Write a list, such as [packets, hosts]"),
    "dict_type": ("a mapping of names", "Write names below it, each with its keys"),
    "model_type": ("a mapping of keys", "Write keys and their values below it"),
}
_MISSING: Final = {"name": "Add one, such as `name: network`"}


def input_errors(error: ValidationError, document: Document) -> list[InputError]:
    """One error for each mistake, with its position."""
    return [_input_error(details, document) for details in error.errors(include_url=False)]


def empty_error(path: Sequence[str | int], document: Document) -> InputError:
    """The error for a key without a value, or a section without entries."""
    remedy = _missing(path).get(str(path[-1]), "Give it a value, or remove the key")
    return InputError(about(path, "it is empty"), remedy, document.place(path))


def _missing(path: Sequence[str | int]) -> Mapping[str, str]:
    """The remedies for required keys of the mapping that a path is in."""
    if len(path) == 2:
        return {}  # the name of an entry, which is arbitrary
    section = SECTIONS.get(str(path[0]))
    return _MISSING if section is None else section.missing


def _input_error(details: Any, document: Document) -> InputError:
    path: Path = details["loc"]
    kind: str = details["type"]
    parent, key = path[:-1], str(path[-1])
    if kind == "missing":
        return InputError(about(parent, f"`{key}` is missing"), _missing(path)[key], document.place(parent))
    if kind == "extra_forbidden":
        return InputError(
            about(parent, f"unknown key `{key}`"), _keys_remedy(key, parent), document.place(path)
        )
    if details["input"] is None or kind in ("string_too_short", "too_short"):
        return empty_error(path, document)
    what, remedy = _sentence(kind, details["input"], details.get("ctx", {}))
    return InputError(about(path, what), remedy, document.place(path))


def _sentence(kind: str, value: object, context: dict[str, Any]) -> tuple[str, str]:
    """What is wrong with a value, and the remedy."""
    if kind == "value_error":
        error: InputError = context["error"]
        return error.what, error.remedy
    if kind == "literal_error":
        return f"{shown(value)} is not a choice here", f"Write {context['expected']}"
    expected, remedy = _EXPECTED[kind]
    return f"{kind_of(value)} stands where {expected} belongs", remedy


def _keys_remedy(key: str, parent: Path) -> str:
    keys = _keys(_model(parent))
    match = close_match(key, keys)
    if match:
        return f"Perhaps `{match}` is meant"
    owner = next((name for name, section in SECTIONS.items() if key in _keys(section.entry)), None)
    belongs = f"It belongs under `{owner}`; the keys" if owner else "The keys"
    return f"{belongs} here are {one_of(keys)}"


def _model(path: Path) -> type[BaseModel]:
    """The model of the mapping at a path: the file itself, an entry of a section, or an entry within one."""
    if not path:
        return WarehouseFile
    model: type[BaseModel] = SECTIONS[str(path[0])].entry
    for key in path[2:]:
        inner = next(field for name, field in model.model_fields.items() if key in (field.alias, name))
        model = next(_entries_in(inner.annotation))
    return model


def _entries_in(annotation: Any) -> Iterator[type[Entry]]:
    """The entries in a type such as `Given[CostEntry]`."""
    if isinstance(annotation, type) and issubclass(annotation, Entry):
        yield annotation
    for inner in get_args(annotation):
        yield from _entries_in(inner)


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]
