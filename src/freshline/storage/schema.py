"""In what two Delta schemas differ, for users to read."""

from __future__ import annotations

import json
from typing import Any

from deltalake import Schema

_NULLABILITY = ("nullable", "containsNull", "valueContainsNull", "metadata")


def differences(stored: Schema, defined: Schema) -> list[str]:
    """What a stored table has otherwise than its definition; nullability and order do not count."""
    there, wanted = _types(stored), _types(defined)
    found = [f"column {name} is missing" for name in wanted if name not in there]
    found += [f"column {name} is not defined" for name in there if name not in wanted]
    found += [
        f"column {name} is {_words(there[name])}, not {_words(wanted[name])}"
        for name in wanted
        if name in there and there[name] != wanted[name]
    ]
    return found


def _types(schema: Schema) -> dict[str, Any]:
    return {field["name"]: _plain(field["type"]) for field in json.loads(schema.to_json())["fields"]}


def _plain(part: Any) -> Any:
    """A type without what says whether there may be nulls."""
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items() if key not in _NULLABILITY}
    if isinstance(part, list):
        return [_plain(value) for value in part]
    return part


def _words(part: Any) -> str:
    return part if isinstance(part, str) else json.dumps(part)
