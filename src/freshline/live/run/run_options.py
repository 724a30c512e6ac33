"""The options of a run, besides its warehouse and its folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from freshline.definitions.live_checks import check_runnable
from freshline.definitions.warehouse import Warehouse
from freshline.landing.directories import check_directories, landing_directories
from freshline.live.status.status import Progress
from freshline.live.tables.definition_changes import check_tables
from freshline.live.tables.run_context import RunSetup, Warm
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.quarantine import Quarantine


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run. The defaults are those of `freshline run`."""

    master: str | None = None  # of Spark; None: this machine
    settings: Mapping[str, str] | None = None  # of Spark
    session: SparkSession | None = None  # the caller's own Spark, which the run does not close
    history: Path | None = None  # instead of the storage's
    quarantine: Quarantine | None = None  # instead of the storage's: files then stay in place
    drain: bool = False  # stop when nothing is left to load; do not wait for releases of derived tables
    files_max: int | None = None  # of each feed
    warm: Warm = "first"  # the plans to warm up before the search for files; a benchmark needs all
    accepted: Sequence[str] = ()  # changed tables that continue all the same
    accept_landing: bool = False  # accept directories that do not look like landing directories
    batches: bool = True  # a job may take several files of a backlog
    busy_beside: int = 0  # tracks that something else keeps busy; costs are recorded with them
    on_start: Callable[[Progress], None] | None = None  # receives the progress of the start
    node: str | None = None  # run only this node's part


def run_setup(warehouse: Warehouse, folder: Path, storage: Path, options: RunOptions) -> RunSetup:
    """The checked setup of a run: bad definitions, tables and landing directories are errors."""
    check_runnable(warehouse)
    check_tables(warehouse, options.accepted, "--accept-change")
    node = options.node
    feeds = {name: feed for name, feed in warehouse.feeds.items() if node is None or feed.node == node}
    landing = landing_directories(replace(warehouse, feeds=feeds), folder, storage)
    layout = StorageLayout(storage)
    control = layout.control(node)
    if options.quarantine is None and not options.accept_landing:  # with another quarantine no file is moved
        loaded = any(layout.tables.glob("*"))
        check_directories(warehouse, landing, control.landing, loaded=loaded)
    return RunSetup(
        warehouse=warehouse,
        node=node,
        landing=landing,
        layout=layout,
        control=control,
        history=options.history or control.history,
        accepted=options.accepted,
        master=options.master,
        settings=options.settings,
        session=options.session,
        warm=options.warm if options.session is None else "none",
    )
