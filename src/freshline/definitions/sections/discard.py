"""`discard` of a base table: files that change little may be skipped (paper 003)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ConfigDict, Field

from freshline.base.errors import InputError
from freshline.definitions.language.policies import POLICIES, as_written, discarding_policies
from freshline.definitions.language.values import Entry, Text
from freshline.definitions.sections.feeds import FEEDS, Feed
from freshline.definitions.sections.pools import POOLS, Pool
from freshline.sql.columns import Column, parse_columns
from freshline.sql.kept_columns import kept_columns

if TYPE_CHECKING:
    from freshline.definitions.language.section import LiveCheck, Path, Resolution
    from freshline.definitions.sections.table_entry import TableEntry
    from freshline.definitions.sections.tables import Table

_AS_IT_STANDS: Final = "Select the feed's column as it stands, or remove `discard`"
MISSING: Final = {
    "key": "Add the column that says whose value it is, such as `key: sensor`",
    "value": "Add the column with the value, such as `value: reading`",
}


@dataclass(frozen=True, slots=True)
class Discard:
    """The columns of a table that show how much a file changes."""

    key: str
    value: str

    def in_words(self) -> str:
        """
        >>> Discard("sensor", "Reading").in_words()
        'by reading of each sensor'
        """
        return f"by {self.value.lower()} of each {self.key.lower()}"


class DiscardEntry(Entry):
    """The columns that show how much a file changes the table."""

    model_config = ConfigDict(title="Discard")

    key: Text = Field(description="The column that identifies a value: a text or a whole number.")
    value: Text = Field(description="The column with the value: a number.")

    def resolved(self) -> Discard:
        return Discard(self.key, self.value)


def resolved_discard(resolution: Resolution, name: str, entry: TableEntry, pool: str) -> Discard | None:
    """The record of a table's entry; reports it if it has no effect or an unintended one."""
    if entry.discard is None:
        return None
    path = ("tables", name, "discard")
    if entry.feed is None:
        what = "it has no effect on a table that loads no feed"
        resolution.report(path, what, "Move it to the base table whose files may be left out")
    else:
        feed = resolution.records(FEEDS).get(entry.feed)
        _check(resolution, path, feed, resolution.records(POOLS).get(pool))
    return entry.discard.resolved()


def _check(resolution: Resolution, path: Path, feed: Feed | None, pool: Pool | None) -> None:
    """Reports what makes it useless; a feed or pool that is None has been reported already."""
    if feed is not None and feed.arrival != "files":
        what = "it has no effect on a continuous feed, which has no files to leave out"
        resolution.report(path, what, "Remove it, or set `arrival: files`")
    if feed is not None and feed.shed is not None:
        what = f"its feed `{feed.name}` sheds rows, and only one of the two can decide what is loaded"
        resolution.report(path, what, "Remove it, or the feed's `shed`")
    if pool is not None and not POLICIES[pool.policy].discards:
        what = f"it has no effect in the pool `{pool.name}`, whose policy {pool.policy} loads every file"
        resolution.report(path, what, f"Remove it, or set {as_written(discarding_policies())}")


def check_discard_live(check: LiveCheck, table: Table) -> None:
    """Reports columns that do not exist or cannot be compared."""
    feed = None if table.feed is None else check.warehouse.feeds[table.feed]
    if table.discard is None or feed is None or feed.landing.schema is None:
        return
    path = ("tables", table.name, "discard")
    try:
        kept = kept_columns(table.select, parse_columns(feed.landing.schema))
    except InputError:
        return  # errors of a schema or of SQL are reported there
    if kept is None:
        remedy = "Leave out or multiply records in a table that reads this one, or remove `discard`"
        check.report(path, table.place, "its `select` does not give one row for each record", remedy)
        return
    key, value = kept.get(table.discard.key.lower()), kept.get(table.discard.value.lower())
    listed = ", ".join(column.name for column in kept.values())
    for word, name, column in (("key", table.discard.key, key), ("value", table.discard.value, value)):
        if column is None:
            remedy = f"Name one of {listed}" if table.select is None else _AS_IT_STANDS
            check.report((*path, word), table.place, f"the table has no column `{name}` of its feed", remedy)
    if key is not None and not (key.is_text or key.number == "integer"):
        remedy = "Name a column of texts or of whole numbers"
        check.report((*path, "key"), table.place, f"`{key.name}` cannot be a key", remedy)
    if value is not None and value.number is None:
        check.report(
            (*path, "value"), table.place, f"`{value.name}` is no number", "Name a column of numbers"
        )
    if key is not None and value is not None and key.name == value.name and value.number == "integer":
        what = f"`{key.name}` is both key and value, so the value of a key never changes"
        check.report((*path, "value"), table.place, what, "Name the column with what changes")
    if table.timestamp is not None and feed.landing.timestamp is not None:
        timestamp = kept.get(table.timestamp.lower())
        if timestamp is None or timestamp.name.lower() != feed.landing.timestamp.lower():
            what = f"its column `{table.timestamp}` is not the timestamp of its feed"
            check.report(path, table.place, what, _AS_IT_STANDS)


def discard_columns(table: Table, feed: Feed) -> tuple[Column, Column]:
    """The feed's columns of a table's key and value; both exist."""
    assert table.discard is not None
    assert feed.landing.schema is not None
    kept = kept_columns(table.select, parse_columns(feed.landing.schema))
    assert kept is not None
    return kept[table.discard.key.lower()], kept[table.discard.value.lower()]
