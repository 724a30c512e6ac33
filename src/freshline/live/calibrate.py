"""Costs measured beforehand, on the files at hand."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from freshline.definitions.warehouse import Warehouse
from freshline.live.runner import Runner
from freshline.storage.layout import Layout
from freshline.storage.quarantine import InPlace


def calibrate(
    warehouse: Warehouse,
    folder: Path,
    storage: Path,
    *,
    files_max: int,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
) -> dict[str, int]:
    """Loads each feed's first files into tables that are thrown away; the history of costs is kept.

    It is the real runner on a storage of its own, so what is measured is what will run. Files stay where
    they are, those that cannot be loaded too. Returns how many jobs each table ran.
    """
    feeds = {
        name: replace(feed, landing=replace(feed.landing, after_load="keep"))
        for name, feed in warehouse.feeds.items()
    }
    layout = Layout(storage)
    layout.prepare()
    with (
        tempfile.TemporaryDirectory(prefix="calibrate-", dir=layout.control) as scratch,
        Runner(
            replace(warehouse, feeds=feeds),
            folder,
            Path(scratch),
            master=master,
            settings=settings,
            session=session,
            history=layout.history,
            quarantine=InPlace(Layout(Path(scratch)).quarantine),
            drain=True,
            files_max=files_max,
        ) as runner,
    ):
        runner.run()
        return {table.name: table.jobs for table in runner.status().tables}
