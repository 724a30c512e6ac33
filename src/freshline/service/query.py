"""Queries to a running warehouse from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from freshline.definitions.load import load
from freshline.service.client import ask
from freshline.storage.control.layout import StorageLayout

_FILE: Final = "freshline.yml"


def query(
    sql: str, *, class_name: str, deadline: str, share: float | None = None, project: str | Path = _FILE
) -> dict[str, Any]:
    """Asks the running warehouse and returns the answer by the deadline, with estimates if necessary.

    `project` is the warehouse's file or its folder. The answer is that of `POST /v1/query`: `columns`,
    `rows`, `intervals`, `few`, `share`, `complete`, `parts`, `error`, `freshness` and `seconds`. Raises
    `service.client.NoAnswer` if the request is not admitted or has no answer by the deadline, and InputError
    if it is invalid or no warehouse runs.
    """
    path = Path(project)
    folder, file = (path, path / _FILE) if path.is_dir() else (path.parent, path)
    question: dict[str, Any] = {"sql": sql, "class": class_name, "deadline": deadline}
    if share is not None:
        question["share"] = share
    body = json.dumps(question).encode()
    warehouse = load(file)
    control = StorageLayout(folder / warehouse.storage).first_control(warehouse.nodes)
    return ask(control.service, "POST", "/v1/query", body)
