"""The parts of the service's OpenAPI description that do not follow from its functions."""

from __future__ import annotations

from typing import Any, Final

from freshline.base.duration import DURATION_PATTERN
from freshline.service.failures import STATUSES

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_NUMBER: Final[Schema] = {"type": "number"}


def _object(needed: Schema, **others: Any) -> Schema:
    return {
        "type": "object",
        "properties": {**needed, **others},
        "required": list(needed),
        "additionalProperties": False,
    }


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_SHARE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}
_ERROR: Final = _object({"code": {"enum": list(STATUSES)}, "message": _TEXT, "remedy": _TEXT})
_FAILURE: Final = {"type": "object", "properties": {"error": _ERROR}, "required": ["error"]}
_INTERVAL: Final = {**_list(_or_null(_NUMBER)), "minItems": 2, "maxItems": 2}
_QUESTION: Final = _object(
    {"sql": _TEXT, "class": _TEXT, "deadline": {**_TEXT, "pattern": DURATION_PATTERN}},
    share={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
)
_ANSWER: Final = _object(
    {
        "class": _TEXT,
        "columns": _list(_TEXT),
        "rows": _list(_list({})),
        "intervals": _list(_list(_or_null(_INTERVAL))),
        "few": _list(_list({"type": "boolean"})),
        "share": _SHARE,
        "complete": {"type": "boolean"},
        "parts": _object({"done": _COUNT, "of": _COUNT}),
        "error": _SHARE,
        "freshness": {"type": "object", "additionalProperties": _or_null(_TEXT)},
        "seconds": _NUMBER,
    },
    notes=_list(_TEXT),
)
_CLASS: Final = {
    "type": "object",
    "properties": {
        "class": _TEXT,
        "ate": _or_null(_SHARE),
        "admitted": _or_null(_SHARE),
        "quota": _or_null(_NUMBER),
        "waiting": _COUNT,
        "state": {"enum": ["IDLE", "KEPT", "SETTLING", "BROKEN"]},
    },
    "required": ["class", "ate", "admitted", "quota", "waiting"],
}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


# For all paths.
FAILURES: Final[dict[int | str, dict[str, Any]]] = {
    status: {
        "description": ", ".join(code for code in STATUSES if STATUSES[code] == status),
        "content": _json(_FAILURE),
    }
    for status in sorted(set(STATUSES.values()))
}
_ARROW: Final = {"application/vnd.apache.arrow.stream": {"schema": {**_TEXT, "format": "binary"}}}
QUERY: Final[dict[str, Any]] = {
    "openapi_extra": {"requestBody": {"required": True, "content": _json(_QUESTION)}},
    "responses": {200: {"description": "The answer.", "content": _json(_ANSWER) | _ARROW}},
}
CLASSES: Final[dict[str, Any]] = {
    "responses": {
        200: {"description": "How they are.", "content": _json(_object({"classes": _list(_CLASS)}))}
    }
}
