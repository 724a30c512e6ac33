"""What a run needs before anything can be loaded: the storage for itself, Spark, the tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from freshline.base import signals
from freshline.base.free_memory import share_arenas
from freshline.landing.directories import remember_directories
from freshline.live.nodes.node_join import join_nodes
from freshline.live.nodes.same_definitions import check_no_other
from freshline.live.nodes.step_status import placement_rows
from freshline.live.run.heartbeat import Heartbeat
from freshline.live.run.run_end import RunEnd
from freshline.live.run.start_up import StartUp
from freshline.live.status.status import Progress
from freshline.live.tables.definition_changes import open_tables
from freshline.live.tables.node_share import all_of, part_of
from freshline.live.tables.run_context import RunResources, RunSetup
from freshline.live.tables.warm_plans import WarmPlans
from freshline.live.tables.warm_start import await_warmth, open_warming, plans_to_warm
from freshline.planning.plan.step_placement import StepPlacement
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.sink import driver_limit
from freshline.spark.loading.warm_up import WarmUp
from freshline.spark.session.java import end_java
from freshline.spark.session.session import is_local, open_session
from freshline.storage.control.history import History
from freshline.storage.control.lease import Identity, Lease
from freshline.storage.control.permissions import modes_of
from freshline.storage.control.scratch import scratch_folder
from freshline.storage.delta.ledger import Ledger


def open_site(
    site: RunSetup,
    run_id: str,
    stack: ExitStack,
    ending: RunEnd,
    lose: Callable[[str], None],
    listener: Callable[[Progress], None] | None = None,
) -> RunResources:
    """Opens everything, in this order; the stack closes it in the other. The lease is held all the time.

    `listener` hears how far it is.
    """
    share_arenas()
    scratch, placed = _open_storage(site, run_id, stack, lose)
    part = all_of(site.warehouse)
    if site.node is not None and placed is not None:
        part = part_of(site.warehouse, site.node, placed.nodes)
    sections = placement_rows(placed)
    start_up = StartUp(site.warehouse.name, run_id, site.control.status, listener, site.node, sections)
    start_up.open()
    stack.callback(start_up.close)
    start_up.say(Progress("starting Spark"))
    session = _open_spark(site, scratch, stack, ending)
    signals.check()
    history = stack.enter_context(History(site.history))
    ledger = Ledger(site.control.ledger)
    stack.callback(ledger.close)
    numbers = count(1)
    of = len(site.warehouse.stored)
    start_up.say(Progress("opening tables", 0, of))
    columns = schemas(
        session, site.warehouse, lambda: start_up.say(Progress("opening tables", next(numbers), of))
    )
    opened = open_tables(part, site.layout, columns, site.accepted)
    for name, table in opened.tables.items():
        ledger.catch_up(name, table)
    warmth, warming = WarmPlans(), None
    if site.warm != "none":
        warmth = WarmPlans(plans_to_warm(part.local, site.landing, columns, ledger))
        warm_up = WarmUp(site.warehouse, columns, scratch / "warm-up")
        warming = open_warming(part, warmth, warm_up, session, scratch / "warm-up")
        stack.callback(warming.close, lambda: ending.abandoned)
        warming.start()
        await_warmth(warmth, warming, start_up.say, None if site.warm == "all" else warming.at_once)
    signals.check()
    return RunResources(part, placed, scratch, session, history, ledger, columns, opened, warmth, warming)


def _open_storage(
    site: RunSetup, run_id: str, stack: ExitStack, lose: Callable[[str], None]
) -> tuple[Path, StepPlacement | None]:
    """The storage is ours from here on; the run's scratch folder in it, and where steps are placed."""
    layout, control = site.layout, site.control
    layout.prepare(control, private=is_local(site.master))
    stack.enter_context(modes_of(layout.root))
    identity = Identity.mine(run_id)
    lease = Lease.acquire(control.lease, identity)
    stack.callback(lease.release)
    heartbeat = Heartbeat(lease, lose)
    heartbeat.start()
    stack.callback(heartbeat.stop)
    check_no_other(layout.other_controls(site.warehouse.nodes), identity)
    control.clear(identity)
    layout.clear(site.landing)
    remember_directories(site.landing, control.landing)
    scratch = stack.enter_context(scratch_folder(control.scratch, identity, has_lease=True))
    return scratch, None if site.node is None else join_nodes(site.warehouse, site.node, layout, identity)


def _open_spark(site: RunSetup, scratch: Path, stack: ExitStack, ending: RunEnd) -> SparkSession:
    if site.session is not None:
        return site.session
    # Before: it may be interrupted when Spark is there and nobody knows.
    stack.callback(lambda: ending.interrupted and end_java())
    session = open_session(site.warehouse.name, site.master, site.settings, scratch / "spark")
    stack.callback(_stop_spark, session, ending)
    driver_limit(session)  # a setting that is wrong is told now, not by every update
    return session


def _stop_spark(session: SparkSession, ending: RunEnd) -> None:
    if ending.interrupted and end_java():
        return
    try:
        session.stop()
    except (Py4JError, OSError):
        if not ending.lost:
            raise
