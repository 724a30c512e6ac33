"""Entries of a generated `freshline.yml`, as they are written."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

# A section of a file, or an entry of one.
Entry = dict[str, Any]
# The columns of every feed and every table.
SCHEMA: Final = "ts timestamp, k string, v double"


def written(document: Entry) -> str:
    """The file, an entry a line."""
    lines = []
    for key, value in document.items():
        if isinstance(value, dict):
            lines.append(f"{key}:")
            lines += [f"  {name}: {json.dumps(entry)}" for name, entry in value.items()]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def us(duration_us: int) -> str:
    return f"{duration_us}us"


def number(value: Fraction, digits: int = 9) -> float:
    """Rounded down, so that what fits still does."""
    scale: int = 10**digits
    return int(value * scale) / scale


def sql_over(rng: random.Random, sources: Iterable[str]) -> str:
    """A query with the columns of its sources: a selection of one, or the rows of all."""
    selects = [f"SELECT ts, k, v FROM {source}" for source in sources]
    if len(selects) == 1 and rng.random() < 0.3:
        return f"{selects[0]} WHERE v > 10"
    return " UNION ALL ".join(selects)


def sources_of(sql: str) -> list[str]:
    """The tables that a query made by `sql_over` reads."""
    return [after.split()[0] for after in sql.split(" FROM ")[1:]]
