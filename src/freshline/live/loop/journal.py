"""A live run's journal: a header from which a replay makes the same kernel, then every call."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TextIO

from freshline import __version__
from freshline.definitions.serial import to_record
from freshline.kernel.core.journal import Journal
from freshline.planning.plan.plan import Plan


def journal_of(
    log: TextIO,
    run_id: str,
    now: int,
    freshness: Mapping[str, int | None],
    plan: Plan,
    *,
    unknown: Collection[str],
    batches: bool,
    node: str | None,
) -> Journal:
    """The journal of a run that begins now; `unknown` are the tables without a known cost."""
    header: dict[str, Any] = {"freshline": __version__, "run": run_id, "now": now, "freshness": freshness}
    if unknown:
        header["unknown"] = sorted(unknown)
    if not batches:
        header["batches"] = False
    if plan.placed is not None:
        header |= {"node": node, "placement": plan.placed.record()}
    return Journal(log, {**header, "warehouse": to_record(plan.warehouse)})
