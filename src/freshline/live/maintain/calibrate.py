"""Measures costs before a run, on existing files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from freshline.base.errors import InputError
from freshline.definitions.sections.nodes import is_local
from freshline.definitions.warehouse import Warehouse
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.planning.costs.fit import RUNS_LEAST
from freshline.spark.session.busy_tracks import busy_tracks
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.lease import Identity
from freshline.storage.control.permissions import modes_of
from freshline.storage.control.quarantine import QuarantinedFile, QuarantineInPlace
from freshline.storage.control.scratch import scratch_folder


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """The number of jobs by table, the files that could not be loaded, and the reason of an early end."""

    jobs: dict[str, int]
    left: list[QuarantinedFile]
    lost_because: str | None = None


def calibrate(
    warehouse: Warehouse,
    folder: Path,
    storage: Path,
    *,
    files_max: int,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    session: SparkSession | None = None,
    loaded: bool = False,
) -> CalibrationResult:
    """Loads each feed's first files into temporary tables; only the history of costs is kept.

    It uses the real runner on a temporary storage, so it measures the code that will run. All files stay
    where they are, even those that cannot be loaded. With `loaded` all other tracks are busy meanwhile.
    """
    if warehouse.nodes:
        what = "the costs of steps are measured on the nodes that run them"
        raise InputError(what, "Run it: it learns costs that are not declared (`freshline run --drain`)")
    beside = _other_tracks(warehouse) if loaded else 0
    layout = StorageLayout(storage)
    control = layout.control()
    layout.prepare(control, private=is_local(master))
    identity = Identity.mine(f"calibrate-{uuid4().hex[:6]}")
    with (
        modes_of(layout.root),
        scratch_folder(control.scratch, identity, has_lease=False) as scratch,
    ):
        quarantine = QuarantineInPlace(StorageLayout(scratch).quarantine)
        with Runner(
            _trial(warehouse, files_max, loaded),
            folder,
            scratch,
            RunOptions(
                master=master,
                settings=settings,
                session=session,
                history=control.history,
                quarantine=quarantine,
                drain=True,
                files_max=files_max,
                warm="all",
                batches=False,  # the cost of one file is to be learned, from few files
                busy_beside=beside,
            ),
        ) as runner:
            with busy_tracks(runner.session, beside):
                runner.run()
            jobs = {table.name: table.jobs for table in runner.status().tables}
    return CalibrationResult(jobs, quarantine.left, runner.stopped_because if runner.lost else None)


def _other_tracks(warehouse: Warehouse) -> int:
    """The tracks beside one of each pool that has tables."""
    measured = {table.pool for table in warehouse.tables.values()}
    return sum(pool.tracks for pool in warehouse.pools.values()) - len(measured)


def _trial(warehouse: Warehouse, files_max: int, loaded: bool) -> Warehouse:
    """The warehouse to measure: without pauses, and with enough updates from few files.

    `edf` starts complete updates before their release, so no job waits for its period. An update of a derived
    table is complete once it spans its share of the files. Beside busy tracks every pool has one track.
    """
    tables, spans_us = dict(warehouse.tables), {}
    for name in warehouse.topological_order:
        table = tables[name]
        if table.feed is not None:
            spans_us[name] = warehouse.feeds[table.feed].period_us or table.period_us
        else:
            spans_us[name] = max(spans_us[source] for source in table.sources)
            share_us = max(1, files_max // (RUNS_LEAST + 1)) * spans_us[name]
            tables[name] = replace(table, period_us=min(table.period_us, share_us))
    return replace(
        warehouse,
        pools={
            name: replace(pool, policy="edf", tracks=1 if loaded else pool.tracks)
            for name, pool in warehouse.pools.items()
        },
        feeds={
            name: replace(feed, landing=replace(feed.landing, after_load="keep"))
            for name, feed in warehouse.feeds.items()
        },
        tables=tables,
        queries={},
    )
