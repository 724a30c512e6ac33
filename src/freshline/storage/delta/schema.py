"""The differences of two Delta schemas in words for users, and the schemas that a table can get."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema

from freshline.base.errors import InputError

_NULLABILITY = ("nullable", "containsNull", "valueContainsNull", "metadata")


@dataclass(frozen=True, slots=True)
class SchemaDifferences:
    """The differences of a stored table from its definition, apart from nullability and order."""

    missing: tuple[str, ...]
    undefined: tuple[tuple[str, str], ...]  # column, stored type
    retyped: tuple[tuple[str, str, str], ...]  # column, stored type, defined type

    def __bool__(self) -> bool:
        return bool(self.missing or self.undefined or self.retyped)

    def __str__(self) -> str:
        return "; ".join(
            [
                *(f"column {name} is missing" for name in self.missing),
                *(f"column {name} is not defined" for name, _ in self.undefined),
                *(f"column {name} is {there}, not {wanted}" for name, there, wanted in self.retyped),
            ]
        )

    def without(self, column: str) -> SchemaDifferences:
        return SchemaDifferences(
            tuple(name for name in self.missing if name != column),
            tuple(each for each in self.undefined if each[0] != column),
            tuple(each for each in self.retyped if each[0] != column),
        )

    @property
    def is_wider(self) -> bool:
        """Whether the definition has additional columns and no other difference."""
        return bool(self.missing) and not (self.undefined or self.retyped)


class OtherColumns(InputError):  # noqa: N818  (it is what was found)
    """A table's columns differ from its definition."""

    def __init__(self, path: Path, name: str, found: SchemaDifferences, is_partitioned: bool) -> None:
        self.differences = found
        self.is_partitioned = is_partitioned
        sentences = [str(found)] if found else []
        sentences += ["it is partitioned"] if is_partitioned else []
        super().__init__(
            f"the table {name} at {path} differs from its definition: {'; '.join(sentences)}",
            "Give the definition another name, or move the old table away",
        )


def differences(stored: Schema, defined: Schema) -> SchemaDifferences:
    there, wanted = _types(stored), _types(defined)
    return SchemaDifferences(
        tuple(name for name in wanted if name not in there),
        tuple((name, _words(there[name])) for name in there if name not in wanted),
        tuple(
            (name, _words(there[name]), _words(wanted[name]))
            for name in wanted
            if name in there and there[name] != wanted[name]
        ),
    )


def check_can_have(path: Path, table: DeltaTable, schema: pa.Schema) -> None:
    """Rejects a schema that the table's protocol does not allow: a commit would make the table unreadable."""
    features = table.protocol().writer_features or ()
    if "timestampNtz" not in features and '"timestamp_ntz"' in Schema.from_arrow(schema).to_json():
        raise InputError(
            f"the table at {path} was made without timestamp_ntz: it cannot get such a column",
            "Cast it to timestamp, or move the old table away",
        )


def _types(schema: Schema) -> dict[str, Any]:
    return {field["name"]: _plain(field["type"]) for field in json.loads(schema.to_json())["fields"]}


def _plain(part: Any) -> Any:
    """A type without nullability."""
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items() if key not in _NULLABILITY}
    if isinstance(part, list):
        return [_plain(value) for value in part]
    return part


def _words(part: Any) -> str:
    return part if isinstance(part, str) else json.dumps(part)
