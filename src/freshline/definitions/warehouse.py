"""The records of a warehouse: frozen, complete and consistent, without behaviour.

`freshline.definitions.load` makes them from a user's file; tests make them directly. All durations are whole
microseconds, all defaults are filled in, and all sources are resolved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from freshline.definitions.language.section import Section
from freshline.definitions.sections.classes import CLASSES, ServiceClass
from freshline.definitions.sections.feeds import FEEDS, Feed
from freshline.definitions.sections.nodes import NODES, Node
from freshline.definitions.sections.pools import POOLS, Pool
from freshline.definitions.sections.queries import QUERIES, Query
from freshline.definitions.sections.steps import Step
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.sections.tables import TABLES, Table


@dataclass(frozen=True, slots=True)
class Warehouse:
    """Everything that one file defines. Each section is in the order of its definition.

    The fields with a section are the sections of the file, in the order in which they are resolved. A new
    section is a file of its own, and a field here.
    """

    name: str
    storage: str
    pools: Mapping[str, Pool] = field(metadata={"section": POOLS})
    feeds: Mapping[str, Feed] = field(metadata={"section": FEEDS})
    tables: Mapping[str, Table] = field(metadata={"section": TABLES})
    # The names of the tables, every table after its sources.
    topological_order: tuple[str, ...]
    # The tables with a feed of arrival `files` somewhere upstream; rule (4) of paper 001 releases them.
    released_by_files: frozenset[str] = field(default_factory=frozenset)
    queries: Mapping[str, Query] = field(default_factory=dict, metadata={"section": QUERIES})
    # The most important first.
    classes: Mapping[str, ServiceClass] = field(default_factory=dict, metadata={"section": CLASSES})
    nodes: Mapping[str, Node] = field(default_factory=dict, metadata={"section": NODES})
    links: tuple[tuple[str, str], ...] | None = None  # from node to node; None: from each to each
    # The tables of outputs with a deadline. They have no period; a step is released when its inputs advance.
    steps: Mapping[str, Step] = field(default_factory=dict)
    step_order: tuple[str, ...] = ()  # every step after those that it reads
    cores: int | None = None  # that the tracks share, beside what nodes say; None if unknown

    @property
    def stored(self) -> dict[str, StoredDefinition]:
        """All stored tables: steps, which read no periodic table, then periodic tables."""
        return {**self.steps, **self.tables}

    def nodes_of(self, step: str) -> tuple[str, ...]:
        """The nodes that a step may run on."""
        return self.steps[step].nodes or tuple(self.nodes)

    @property
    def stored_order(self) -> tuple[str, ...]:
        """The names of stored tables, each after its sources."""
        return self.step_order + self.topological_order


SECTIONS: Final[Mapping[str, Section[Any, Any]]] = {
    each.name: each.metadata["section"] for each in fields(Warehouse) if "section" in each.metadata
}
