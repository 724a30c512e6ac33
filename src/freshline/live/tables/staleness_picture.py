"""A picture of a run: the staleness of its tables beside bound and target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.table_status import TABLES, TableStatus


def draw_staleness(
    samples: Mapping[str, Sequence[tuple[int, int]]],
    status: WarehouseStatus,
    path: Path,
    spans: Sequence[tuple[str, int, int]] = (),
) -> Path:
    """Draws each table's (instant, staleness) samples against bound and target, as PNG.

    A span (what, from, to), such as ("packets down", ...), is shaded in the axes of every table, even if an
    outage does not affect the table.
    """
    # matplotlib is slow to import
    from freshline.pictures.figures import CURVES_MAX, save
    from freshline.pictures.staleness import Curve, closeness, staleness_figure

    tables = status.rows(TABLES)

    def urgency(table: TableStatus) -> float:
        highest_us = max((staleness for _, staleness in samples.get(table.name, ())), default=0)
        return -closeness(highest_us, table.staleness_bound_us, table.target_lag_us)

    kept = {table.name for table in sorted(tables, key=urgency)[:CURVES_MAX]}
    begin_us, end_us = status.started_us, status.at_us - status.started_us
    curves = [
        Curve(
            table.name,
            [(at_us - begin_us, staleness_us) for at_us, staleness_us in samples.get(table.name, ())],
            table.staleness_bound_us,
            table.target_lag_us,
            end_us,
        )
        for table in tables
        if table.name in kept
    ]
    more = f" (the {len(curves)} closest to their bounds)" if len(tables) > len(curves) else ""
    title = f"{status.name}: staleness against bound and target{more}"
    shaded = [(what, from_us - begin_us, to_us - begin_us) for what, from_us, to_us in spans]
    save(staleness_figure(curves, end_us, title, shaded), path)
    return path
