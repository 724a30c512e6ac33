"""The findings about one generated warehouse."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class WholeReport:
    """What was wrong, and how much was compared."""

    seed: int
    wrong: list[str] = field(default_factory=list)  # each begins with its kind and a colon
    counts: Counter[str] = field(default_factory=Counter)
