"""Adds columns to a table that has rows: there the new columns are null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError
from deltalake.transaction import CommitProperties

from freshline.definitions.computation import Computation
from freshline.storage.delta import computations, log
from freshline.storage.delta.commits import NO_HOOKS, TableTaken
from freshline.storage.delta.snapshot import read_snapshot
from freshline.storage.delta.stored_table import StoredTable


def add_columns(stored: StoredTable, columns: Sequence[pa.Field], computation: Computation | None) -> None:
    """Adds the columns in one commit, which also names the computation of the rows if that is new.

    No file is rewritten. The caller must open the table again: this object keeps the old columns.
    """
    table = DeltaTable(stored.path)
    snapshot = read_snapshot(stored.path, stored.timestamp, table)
    if snapshot.version != stored.version:
        raise TableTaken(f"{stored.path} has another writer")
    information = {"migrated": [column.name for column in columns]}
    if computation is not None:
        number = computations.add(stored.path, computation, "migrated", snapshot.computation)
        snapshot = replace(snapshot, computation=number)
        information |= computations.told(stored.computation, computation, "migrated")
    added = pa.schema([column.with_nullable(True) for column in columns])
    properties = CommitProperties(
        custom_metadata={log.KEY: information},
        max_commit_retries=0,
        app_transactions=snapshot.transactions(),
    )
    try:
        table.alter.add_columns(
            DeltaSchema.from_arrow(added).fields,
            commit_properties=properties,
            post_commithook_properties=NO_HOOKS,
        )
    except DeltaError as error:
        if log.commits(stored.path).stop - 1 == snapshot.version:
            raise
        raise TableTaken(f"{stored.path} has another writer: {error}") from error
