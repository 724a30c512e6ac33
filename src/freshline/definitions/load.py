"""Turns a user's file into the records of a warehouse, or reports all its errors."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from freshline.base.errors import DefinitionErrors, InputError, about
from freshline.base.names import cut, is_name
from freshline.definitions.file import FileEntry, WarehouseFile
from freshline.definitions.language.document import Document, parse, read
from freshline.definitions.language.section import Resolution
from freshline.definitions.sentences import empty_error, input_errors
from freshline.definitions.warehouse import SECTIONS, Warehouse


def load(path: Path | str) -> Warehouse:
    """The warehouse that a file defines. Raises `InputError` with what is wrong, and where."""
    with _rare_collection():
        return _warehouse(read(path))


def loads(text: str, file: str = "freshline.yml") -> Warehouse:
    """The warehouse that a text defines; errors name it `file`."""
    with _rare_collection():
        return _warehouse(parse(text, file))


def _warehouse(document: Document) -> Warehouse:
    errors = [*document.errors, *_name_errors(document)]
    file = _validated(document, errors)
    errors += _missing_errors(document)
    if file is not None:
        entries = {section: getattr(file, section) for section in SECTIONS}
        resolution = Resolution(entries, document, file.history_us, file.links)
        for section in SECTIONS.values():
            resolution.fields |= section.resolve(resolution)
        errors += resolution.errors
        if not errors:
            return Warehouse(name=file.name, storage=file.storage, cores=file.cores, **resolution.fields)
    raise errors[0] if len(errors) == 1 else DefinitionErrors(errors)


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Makes the garbage collector look rarely, and only at the youngest objects.

    A large file becomes a million lasting objects, and scanning them repeatedly takes nearly half the time.
    The garbage of sqlglot is young; without any collection it would pile up.
    """
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 1_000, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


def _missing_errors(document: Document) -> list[InputError]:
    """Errors for required sections that are missing together with their alternative."""
    return [
        InputError(f"`{name}` is missing", section.missing[name], document.place(()))
        for name, section in SECTIONS.items()
        if section.unless is not None and not document.tree.keys() & {name, section.unless}
    ]


def _name_errors(document: Document) -> list[InputError]:
    """Errors of the names in every section, also of entries that are invalid otherwise."""
    errors: list[InputError] = []
    for section, kind in SECTIONS.items():
        entries = document.tree.get(section)
        if not isinstance(entries, dict):
            continue
        # A section may look empty because its only key could not be read.
        if not entries and kind.is_needed and not document.errors:
            errors.append(empty_error((section,), document))
        first_by_folded: dict[str, str] = {}
        for name in entries:
            first = first_by_folded.setdefault(name.lower(), name)
            if first == name and is_name(name):
                continue
            place = document.place((section, name))
            if first != name:
                line = document.place((section, first)).line
                what = f"two definitions of one name: `{name}` is `{first}` of line {line} in another case"
                errors.append(InputError(about((section,), what), "Rename one of the two", place))
            else:
                what = f"`{cut(name)}` cannot be a name"
                remedy = "Begin with a-z, A-Z or _, and go on with up to 127 of a-z, A-Z, 0-9 and _"
                errors.append(InputError(about((section,), what), remedy, place))
    return errors


def _validated(document: Document, errors: list[InputError]) -> FileEntry | None:
    """The file without the entries that are invalid by themselves; None if a whole section is invalid."""
    try:
        return WarehouseFile.model_validate(document.tree)
    except ValidationError as error:
        errors += input_errors(error, document)
        wrong = {details["loc"][:2] for details in error.errors(include_url=False)}
    if any(path[0] in SECTIONS and len(path) == 1 for path in wrong):
        return None
    rest: dict[str, Any] = {"name": "unnamed"}
    for key, value in document.tree.items():
        if key in SECTIONS:
            rest[key] = {name: entry for name, entry in value.items() if (key, name) not in wrong}
        elif (key,) not in wrong:
            rest[key] = value
    return WarehouseFile.model_validate(rest)
