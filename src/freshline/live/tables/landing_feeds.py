"""The feeds whose files are loaded, their landing directories and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from freshline.definitions.sections.feeds import Feed
from freshline.definitions.warehouse import Warehouse


class LandingFeeds:
    """A warehouse's feeds, their landing directories, and the base tables that load them."""

    def __init__(self, warehouse: Warehouse, landing: Mapping[str, Path]) -> None:
        self._feeds = warehouse.feeds
        self._landing = landing
        tables = warehouse.stored.values()
        self._of_table = {table.name: table.feed for table in tables if table.feed is not None}
        self._readers: dict[str, list[str]] = {}
        for table, feed in self._of_table.items():
            self._readers.setdefault(feed, []).append(table)

    @property
    def read(self) -> list[str]:
        """The feeds that some table loads and that have a landing directory."""
        return [name for name in self._landing if name in self._readers]

    def __getitem__(self, name: str) -> Feed:
        return self._feeds[name]

    def of(self, table: str) -> str:
        """The name of the feed that a base table loads."""
        return self._of_table[table]

    def readers(self, name: str) -> list[str]:
        return self._readers[name]

    def landing(self, name: str) -> Path:
        return self._landing[name]
