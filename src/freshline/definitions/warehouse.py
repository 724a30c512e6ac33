"""What a warehouse is: frozen records, complete and consistent, without behaviour.

They are made by `freshline.definitions.load` from a user's file, or by hand in tests. All durations are
whole microseconds; every default has been filled in and every source has been found.
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
    """Everything that one file defines. Each section stands in the order of its definition.

    The fields with a section are the file's sections, in the order in which they are resolved: a new section
    is a file of its own, and a field here.
    """

    name: str
    storage: str
    pools: Mapping[str, Pool] = field(metadata={"section": POOLS})
    feeds: Mapping[str, Feed] = field(metadata={"section": FEEDS})
    tables: Mapping[str, Table] = field(metadata={"section": TABLES})
    # The tables' names, every table after its sources.
    topological_order: tuple[str, ...]
    # The tables with a feed of arrival `files` somewhere upstream: they are released by paper 001's rule (4).
    released_by_files: frozenset[str] = field(default_factory=frozenset)
    queries: Mapping[str, Query] = field(default_factory=dict, metadata={"section": QUERIES})
    # The most important first.
    classes: Mapping[str, ServiceClass] = field(default_factory=dict, metadata={"section": CLASSES})
    nodes: Mapping[str, Node] = field(default_factory=dict, metadata={"section": NODES})
    links: tuple[tuple[str, str], ...] | None = None  # from node to node; None: from each to each
    # The tables of outputs with a deadline: without a period, released when what they read advances.
    steps: Mapping[str, Step] = field(default_factory=dict)
    step_order: tuple[str, ...] = ()  # every step after those that it reads

    @property
    def stored(self) -> dict[str, StoredDefinition]:
        """All tables that are stored: steps, which read no periodic table, and those."""
        return {**self.steps, **self.tables}

    @property
    def stored_order(self) -> tuple[str, ...]:
        """Their names, every one after its sources."""
        return self.step_order + self.topological_order


SECTIONS: Final[Mapping[str, Section[Any, Any]]] = {
    each.name: each.metadata["section"] for each in fields(Warehouse) if "section" in each.metadata
}
