"""`freshline verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from freshline.base.instants import utc
from freshline.base.printable import printable
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    load_project,
    print_json,
    spark_for,
    storage_path,
)


def verify(
    table: Annotated[str, typer.Argument(help="A derived table.")],
    project: ProjectOption = DEFAULT_PROJECT,
    as_json: JsonOption = False,
) -> None:
    """Compute the query of a derived table again, over what its newest update read, and compare.

    Exit code 1 if rows differ. Example: freshline verify traffic
    """
    from freshline.live.maintain.rebuild import table_to_rebuild
    from freshline.live.maintain.verify import verify as compare

    warehouse = load_project(project)
    storage = storage_path(project, warehouse)
    table_to_rebuild(warehouse, storage, table)
    with spark_for(f"{warehouse.name} verify", storage) as session:
        found = compare(session, warehouse, storage, table)
    if as_json:
        print_json(
            {
                "table": table,
                "version": found.version,
                "freshness": utc(found.freshness).isoformat(),
                "equal": found.is_equal,
                "rows": found.rows,
                "missing": found.missing,
                "extra": found.extra,
                "examples": list(found.examples),
                "late": found.late,
            }
        )
    elif found.is_equal:
        print(f"{table} equals its query up to {utc(found.freshness).isoformat()}: {found.rows:,} rows.")
    else:
        print(
            f"{table} differs from its query: {found.missing:,} rows are missing, {found.extra:,} should "
            f"not be there."
        )
        for line in found.examples:
            print(printable(f"  {line}"))
        if found.late:
            print(
                f"{found.late:,} rows of its sources came late: a rebuild includes them, an update does not."
            )
    raise typer.Exit(0 if found.is_equal else 1)
