"""The status of service classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freshline.live.status.screen_table import count, screen_table
from freshline.live.status.section import StatusSection, percent

_STYLES: Mapping[str, str] = {
    "KEPT": "green",
    "SETTLING": "yellow",
    "BROKEN": "bold red",
    "IDLE": "dim",
}


@dataclass(frozen=True)
class ClassStatus:
    """A service class at one instant: figures of its last period and since the run began."""

    name: str
    pool: str
    error: float  # the allowed average error of its answers
    ate: float | None = None  # their average error; None: no answers
    admitted: float | None = None  # the share of its requests; None: no requests
    quota: float | None = None  # the error that requests get parts for, if its policy has quotas
    waiting: int = 0  # requests
    answered: int = 0  # since the run began, like all that follow
    error_mean: float | None = None
    rejected: int = 0
    unanswered: int = 0  # by their deadline
    withdrawn: int = 0  # by the client
    state: str = "IDLE"  # or KEPT, SETTLING, BROKEN: whether the promised error is kept

    def record(self) -> dict[str, Any]:
        """The class as JSON for users' programs."""
        return {"class": self.name, **{key: value for key, value in vars(self).items() if key != "name"}}


class ClassSection(StatusSection[ClassStatus]):
    """The service classes, the most important first."""

    name = "classes"
    rank = 3

    def read(self, record: dict[str, Any]) -> ClassStatus:
        return ClassStatus(**record)

    def view(self, rows: Sequence[ClassStatus], as_of_us: int) -> list[RenderableType]:
        return [_class_table(rows)]


CLASSES = ClassSection()


def _class_table(classes: Sequence[ClassStatus]) -> Table:
    return screen_table(
        classes,
        {
            "class": lambda row: Text(row.name),
            "state": lambda row: Text(row.state, style=_STYLES[row.state]),
            ">error": lambda row: percent(row.ate),
            ">allowed": lambda row: percent(row.error),
            ">admitted": lambda row: percent(row.admitted),
            ">quota": lambda row: percent(row.quota),
            ">waiting": lambda row: count(row.waiting),
            ">answers": lambda row: count(row.answered),
            ">mean": lambda row: percent(row.error_mean),
            ">rejected": lambda row: count(row.rejected),
            ">unanswered": lambda row: count(row.unanswered),
        },
    )
