"""`freshline rebuild`."""

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


def rebuild(
    table: Annotated[str, typer.Argument(help="A derived table.")],
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: JsonOption = False,
) -> None:
    """Recompute a derived table with its current SQL, including the late records that runs leave out.

    Example: freshline rebuild traffic
    """
    from freshline.live.maintain.rebuild import rebuild as make_anew
    from freshline.live.maintain.rebuild import table_to_rebuild

    warehouse = load_project(project)
    storage = storage_path(project, warehouse)
    table_to_rebuild(warehouse, storage, table)
    with spark_for(f"{warehouse.name} rebuild", storage) as session:
        rows = make_anew(session, warehouse, storage, table)
    readers = [name for name, other in warehouse.tables.items() if table in other.sources]
    if as_json:
        print_json({"table": table, "rows": rows, "read_by": readers})
        return
    print(f"Rebuilt {table}: {rows:,} rows.")
    if readers:
        print(f"Tables that read it keep what they had: rebuild {', '.join(readers)} too.")
