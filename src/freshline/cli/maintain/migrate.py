"""`freshline migrate`."""

from __future__ import annotations

from typing import Annotated

import typer

from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    load_project,
    print_json,
    spark_for,
    storage_path,
)


def migrate(
    table: Annotated[str, typer.Argument(help="A base table.")],
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: JsonOption = False,
) -> None:
    """Add the new columns of its feed to a base table: null in existing rows.

    If its `slices` have changed, all its rows are rewritten.

    Example: freshline migrate packets
    """
    from freshline.live.maintain.migrate import migrate as add_columns
    from freshline.live.maintain.migrate import table_to_migrate

    warehouse = load_project(project)
    storage = storage_path(project, warehouse)
    table_to_migrate(warehouse, storage, table)
    with spark_for(f"{warehouse.name} migrate", storage) as session:
        migrated = add_columns(session, warehouse, storage, table)
    if as_json:
        print_json(
            {
                "table": table,
                "added": list(migrated.added),
                "changed": list(migrated.changed),
                "to_rebuild": list(migrated.to_rebuild),
                "dealt": migrated.is_dealt,
            }
        )
        return
    if migrated.is_dealt:
        print(f"The rows of {table} are rewritten into the slices that it defines.")
    if migrated.added:
        print(f"Added to {table}: {', '.join(migrated.added)}. In existing rows it is null.")
    elif not migrated.is_dealt:
        print(f"{table} has every column that is defined.")
    if migrated.changed:
        print(f"The next run asks about what else has changed: {' and '.join(migrated.changed)}.")
    if migrated.to_rebuild:
        print(f"These have other columns now, as by SELECT *: rebuild {', '.join(migrated.to_rebuild)}.")
