"""What a run needs before anything can be loaded: the storage for itself, Spark, the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from freshline import signals
from freshline.definitions.warehouse import Warehouse
from freshline.landing.directories import remember_directories
from freshline.live.changes import OpenTables, open_tables
from freshline.live.ending import Ending
from freshline.live.heartbeat import Heartbeat
from freshline.spark.frames import schemas
from freshline.spark.java import end_java
from freshline.spark.session import is_local, open_session
from freshline.spark.sink import driver_limit
from freshline.spark.warm_up import warm_up
from freshline.storage.history import History
from freshline.storage.layout import Layout
from freshline.storage.lease import Identity, Lease
from freshline.storage.ledger import Ledger
from freshline.storage.modes import modes_of
from freshline.storage.scratch import scratch_folder


@dataclass(frozen=True, slots=True)
class Site:
    """A warehouse, and where it is to run: its files, its storage, its Spark."""

    warehouse: Warehouse
    landing: Mapping[str, Path]  # by feed
    layout: Layout
    history: Path
    accepted: Sequence[str]  # tables that were changed and go on all the same
    master: str | None
    settings: Mapping[str, str] | None
    session: SparkSession | None  # somebody else's, who closes it
    warm: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """What was opened at a site."""

    scratch: Path
    session: SparkSession
    history: History
    ledger: Ledger
    schemas: dict[str, StructType]
    tables: OpenTables


def open_site(
    site: Site, run_id: str, stack: ExitStack, ending: Ending, lose: Callable[[str], None]
) -> Opened:
    """Opens everything, in this order; the stack closes it in the other. The lease is held all the time."""
    scratch = _open_storage(site, run_id, stack, lose)
    session = _open_spark(site, scratch, stack, ending)
    signals.check()
    history = stack.enter_context(History(site.history))
    ledger = Ledger(site.layout.ledger)
    stack.callback(ledger.close)
    columns = schemas(session, site.warehouse)
    opened = open_tables(site.warehouse, site.layout, columns, site.accepted)
    for name, table in opened.tables.items():
        ledger.catch_up(name, table)
    if site.warm:
        tracks = sum(pool.tracks for pool in site.warehouse.pools.values())
        warm_up(session, site.warehouse, columns, scratch / "warm-up", tracks)
    signals.check()
    return Opened(scratch, session, history, ledger, columns, opened)


def _open_storage(site: Site, run_id: str, stack: ExitStack, lose: Callable[[str], None]) -> Path:
    """The storage is ours from here on; the run's scratch folder in it."""
    layout = site.layout
    layout.prepare(private=is_local(site.master))
    stack.enter_context(modes_of(layout.root))
    identity = Identity.mine(run_id)
    lease = Lease.acquire(layout.lease, identity)
    stack.callback(lease.release)
    heartbeat = Heartbeat(lease, lose)
    heartbeat.start()
    stack.callback(heartbeat.stop)
    layout.clear(identity)
    remember_directories(site.landing, layout.landing)
    return stack.enter_context(scratch_folder(layout.scratch, identity, has_lease=True))


def _open_spark(site: Site, scratch: Path, stack: ExitStack, ending: Ending) -> SparkSession:
    if site.session is not None:
        return site.session
    # Before: it may be interrupted when Spark is there and nobody knows.
    stack.callback(lambda: ending.interrupted and end_java())
    session = open_session(site.warehouse.name, site.master, site.settings, scratch / "spark")
    stack.callback(_stop_spark, session, ending)
    driver_limit(session)  # a setting that is wrong is told now, not by every update
    return session


def _stop_spark(session: SparkSession, ending: Ending) -> None:
    if ending.interrupted and end_java():
        return
    try:
        session.stop()
    except (Py4JError, OSError):
        if not ending.lost:
            raise
