"""Opens the resources of a run: the storage, Spark and the tables."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import count

from freshline.base import signals
from freshline.base.free_memory import share_arenas
from freshline.live.nodes.step_status import placement_rows
from freshline.live.run.open_spark import open_spark
from freshline.live.run.open_storage import open_storage
from freshline.live.run.run_end import RunEnd
from freshline.live.run.start_up import StartUp
from freshline.live.status.status import Progress
from freshline.live.tables.definition_changes import open_tables
from freshline.live.tables.node_share import all_of, part_of
from freshline.live.tables.run_context import RunResources, RunSetup
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.live.warm_up.warm_start import await_warmth, open_warming, plans_to_warm
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.warm_up import WarmUp
from freshline.storage.control.history import History
from freshline.storage.delta.ledger import Ledger


def open_site(
    site: RunSetup,
    run_id: str,
    stack: ExitStack,
    ending: RunEnd,
    lose: Callable[[str], None],
    listener: Callable[[Progress], None] | None = None,
) -> RunResources:
    """Opens everything in order; the stack closes it in reverse. The lease is held throughout.

    `listener` receives the progress.
    """
    share_arenas()
    scratch, placed, died_at = open_storage(site, run_id, stack, lose)
    part = all_of(site.warehouse)
    if site.node is not None and placed is not None:
        part = part_of(site.warehouse, site.node, placed.nodes)
    sections = placement_rows(placed)
    start_up = StartUp(site.warehouse.name, run_id, site.control.status, listener, site.node, sections)
    start_up.open()
    stack.callback(start_up.close)
    start_up.say(Progress("starting Spark"))
    session = open_spark(site, scratch, stack, ending)
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
    return RunResources(
        part, placed, scratch, session, history, ledger, columns, opened, warmth, warming, died_at
    )
