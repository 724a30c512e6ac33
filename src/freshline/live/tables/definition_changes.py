"""Finds definitions that changed between two runs, and rejects or accepts them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from deltalake import Schema
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freshline.base.align import last_edge
from freshline.base.errors import DefinitionErrors, InputError
from freshline.base.instants import utc
from freshline.definitions.computation import Computation, changes
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.warehouse import Warehouse
from freshline.live.tables.node_share import NodeShare
from freshline.sql.columns import SLICE_COLUMN
from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta.commits import TableTaken
from freshline.storage.delta.computations import How
from freshline.storage.delta.followed_table import FollowedTable
from freshline.storage.delta.read_table import ReadTable
from freshline.storage.delta.schema import OtherColumns, SchemaDifferences, differences
from freshline.storage.delta.stored_table import StoredTable


@dataclass(frozen=True, slots=True)
class OpenTables:
    """A warehouse's open tables and sentences about their definitions."""

    tables: dict[str, StoredTable]
    followed: dict[str, FollowedTable]  # written by other nodes
    said: tuple[str, ...]

    @property
    def readable(self) -> dict[str, ReadTable]:
        """Own and followed tables."""
        return {**self.followed, **self.tables}


def check_tables(warehouse: Warehouse, names: Collection[str], option: str) -> None:
    """Rejects names that no table has."""
    unknown = [name for name in names if name not in warehouse.stored]
    if unknown:
        what = f"{option} {unknown[0]}: there is no table {unknown[0]}"
        raise InputError(what, f"The tables are {', '.join(warehouse.stored)}")


def open_tables(
    part: NodeShare, layout: StorageLayout, columns: Mapping[str, StructType], accepted: Collection[str]
) -> OpenTables:
    """Opens all tables of a part and makes missing ones. All changed tables are rejected together.

    Otherwise a table would mix rows of two definitions, which readers could not tell apart. A changed table
    in `accepted` continues all the same, and its history records that.
    """
    opening = _Opening(part, accepted)
    for name in part.followed:
        timestamp = part.whole.stored[name].timestamp or ""
        schema = to_arrow_schema(columns[name], timezone="UTC")
        opening.followed[name] = FollowedTable(layout.table(name), timestamp, schema)
        opening.followed[name].reload()
    for name, table in part.local.stored.items():
        schema = to_arrow_schema(columns[name], timezone="UTC")
        try:
            stored = StoredTable.open_or_create(
                layout.table(name),
                name,
                schema,
                table.timestamp or "",
                Computation.of(table, part.whole.feeds),
                table.history_us,
            )
        except OtherColumns as error:
            remedy = error.remedy if error.is_partitioned else columns_remedy(table, error.differences)
            opening.errors.append(InputError(error.what, remedy, table.place))
        else:
            opening.look_at(table, stored)
    return opening.finish()


class _Opening:
    """The findings while tables are opened; nothing is recorded before all are checked."""

    def __init__(self, part: NodeShare, accepted: Collection[str]) -> None:
        self._warehouse = part.whole
        self.followed: dict[str, FollowedTable] = {}
        self._accepted = accepted
        self.errors: list[InputError] = []
        self._tables: dict[str, StoredTable] = {}
        self._records: dict[str, How] = {}
        self._said: list[str] = []

    def look_at(self, table: StoredDefinition, stored: StoredTable) -> None:
        self._tables[table.name] = stored
        before, now = stored.computation, Computation.of(table, self._warehouse.feeds)
        changed = [] if before is None else changes(before, now)
        is_adopted = before is None and stored.sequence > 0
        if table.name in self._accepted and not is_adopted and not (changed and stored.sequence):
            self._said.append(f"{table.name} has not changed since its rows were computed: nothing to accept")
        if before is None:
            self._records[table.name] = "adopted" if is_adopted else "made"
        elif changed and not stored.sequence:
            self._records[table.name] = "made"
        elif changed and table.name in self._accepted and before.slices == now.slices:
            self._accept(table, stored, changed)
        elif changed:
            self.errors.append(_refusal(table, changed, before.slices != now.slices))

    def _accept(self, table: StoredDefinition, stored: StoredTable, changed: list[str]) -> None:
        loaded_to = stored.freshness or 0
        if last_edge(loaded_to, table.align_us) != loaded_to:
            what = (
                f"table {table.name} cannot go on from {_instant(loaded_to)}, inside a window of its `align`"
            )
            self.errors.append(InputError(what, _rebuild(table.name), table.place))
            return
        self._records[table.name] = "accepted"
        sentence = f"{table.name} continues from {_instant(loaded_to)} with these changes: {_and(changed)}"
        readers = [name for name, other in self._warehouse.stored.items() if table.name in other.sources]
        if readers:
            sentence += f". Tables that read it keep what they had: {', '.join(readers)}"
        self._said.append(sentence)

    def finish(self) -> OpenTables:
        if self.errors:
            raise DefinitionErrors(self.errors)
        for name, how in self._records.items():
            try:
                computation = Computation.of(self._warehouse.stored[name], self._warehouse.feeds)
                self._tables[name].record(computation, how)
            except TableTaken as error:
                raise InputError(f"another writer has just changed {name}", "Run again") from error
        adopted = [name for name, how in self._records.items() if how == "adopted"]
        if adopted:
            tables = "The table" if len(adopted) == 1 else "The tables"
            self._said.append(
                f"{tables} {', '.join(adopted)} had no record of how the rows were computed: "
                "the present definition counts as that record"
            )
        return OpenTables(self._tables, self.followed, tuple(self._said))


def stored_table(layout: StorageLayout, table: StoredDefinition) -> StoredTable | None:
    """The stored table; None if it was never made."""
    path = layout.table(table.name)
    return StoredTable.open(path, table.timestamp or "") if (path / "_delta_log").is_dir() else None


def column_differences(stored: StoredTable, columns: StructType) -> SchemaDifferences:
    """The differences of a table's columns from its definition."""
    defined = Schema.from_arrow(to_arrow_schema(columns, timezone="UTC"))
    return differences(Schema.from_arrow(stored.schema), defined)


def columns_remedy(table: StoredDefinition, found: SchemaDifferences) -> str:
    """The remedy for a table whose columns differ from its definition."""
    if table.feed is None:
        return _rebuild(table.name)
    others = found.without(SLICE_COLUMN)
    if others != found and (not others or others.is_wider):
        return _deal(table.name)
    found = others
    if found.is_wider:
        return (
            f"Add the missing columns with 'freshline migrate {table.name}': they are null in existing rows"
        )
    casts = [f"CAST(NULL AS {_spark(there)}) AS {name}" for name, there in found.undefined]
    casts += [f"CAST({name} AS {_spark(there)}) AS {name}" for name, there, _ in found.retyped]
    return (
        f"Let a `select` of {table.name} give the columns as they were, with {_and(casts)}, and "
        f"continue with 'freshline run --accept-change {table.name}'; or give the definition another name"
    )


def _refusal(table: StoredDefinition, changed: list[str], is_dealt_anew: bool) -> InputError:
    what = f"table {table.name} has changed since its rows were computed: {_and(changed)}"
    if is_dealt_anew:
        # Rows of both kinds in one table would join wrongly, slice by slice.
        return InputError(
            what, _rebuild(table.name) if table.feed is None else _deal(table.name), table.place
        )
    first = _rebuild(table.name) if table.feed is None else "Restore its definition"
    remedy = (
        f"{first}, or keep its rows and continue from here with 'freshline run --accept-change {table.name}'"
    )
    return InputError(what, remedy, table.place)


def _deal(name: str) -> str:
    return f"Rewrite its rows in the slices of its definition with 'freshline migrate {name}'"


def _rebuild(name: str) -> str:
    return f"Rebuild it with 'freshline rebuild {name}'"


def _spark(stored: str) -> str:
    """A stored type in SQL; a nested one is too long to write out."""
    return "its old type" if stored.startswith("{") else stored


def _instant(at_us: int) -> str:
    return utc(at_us).isoformat()


def _and(parts: list[str]) -> str:
    return " and ".join(parts)
