"""The kinds of work of a run, one line each.

A kind has its work (`live.loop.work`) and its sections of the status. The work is named as module and class,
so that a reader of a status needs no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from freshline.live.nodes.step_status import OUTPUTS, PLACEMENT, STEPS
from freshline.live.queries.query_status import QUERIES
from freshline.live.requests.class_status import CLASSES
from freshline.live.status.section import StatusSection
from freshline.live.tables.table_status import TABLES

if TYPE_CHECKING:
    from freshline.live.loop.work import Work
    from freshline.live.tables.run_context import RunOpening


@dataclass(frozen=True, slots=True)
class KindOfWork:
    """One kind: its work and its sections of the status."""

    work: str  # module:class
    sections: tuple[StatusSection[Any], ...]


KINDS: Final = (
    KindOfWork("freshline.live.tables.table_work:TableWork", (TABLES,)),
    KindOfWork("freshline.live.queries.query_work:QueryWork", (QUERIES,)),
    KindOfWork("freshline.live.requests.request_work:RequestWork", (CLASSES,)),
    KindOfWork("freshline.live.nodes.node_work:NodeWork", (OUTPUTS, STEPS, PLACEMENT)),
)


def works(opening: RunOpening) -> list[Work]:
    """The work of each kind, for one run."""
    made: list[Work] = []
    for kind in KINDS:
        module, _, name = kind.work.partition(":")
        made.append(getattr(import_module(module), name)(opening))
    return made


def sections() -> tuple[StatusSection[Any], ...]:
    """The sections of all kinds, in the order of the table."""
    return tuple(section for kind in KINDS for section in kind.sections)
