"""The order in which a run warms plans up, and how long its start waits for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import nlargest
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from freshline.base.clock import clock
from freshline.definitions.warehouse import Warehouse
from freshline.landing.scanner import Scanner
from freshline.live.status.status import Progress
from freshline.live.tables.node_share import NodeShare
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.live.warm_up.warm_up_threads import WarmUpThreads
from freshline.spark.loading.same_plan import alike
from freshline.spark.loading.warm_up import WarmUp
from freshline.storage.delta.ledger import Ledger

# A feed's newest files show whether some are waiting. Only the order of the warm-up depends on it.
_NEWEST: Final = 20


def plans_to_warm(
    warehouse: Warehouse,
    landing: Mapping[str, Path],
    columns: Mapping[str, StructType],
    ledger: Ledger,
) -> list[tuple[str, ...]]:
    """The plans of tables with waiting files first, then those of tables downstream."""
    newest = {feed: _newest(folder) for feed, folder in landing.items()}
    waiting: set[str] = set()
    for name in warehouse.stored_order:
        table = warehouse.stored[name]
        files = [] if table.feed is None else newest[table.feed]
        if not waiting.isdisjoint(table.sources) or any(ledger.find(name, file) is None for file in files):
            waiting.add(name)

    def rank(table: str) -> tuple[bool, bool]:
        return table not in waiting, warehouse.stored[table].feed is None

    return sorted(alike(warehouse, columns), key=lambda plan: min(map(rank, plan)))


def _newest(landing: Path) -> list[str]:
    """The names of the newest files in a directory."""
    scanner = Scanner(landing)
    scanner.scan(clock())
    newest = nlargest(_NEWEST, scanner.fresh, key=lambda found: found.mtime_ns)
    return [found.name for found in newest]


def open_warming(
    part: NodeShare, warmth: WarmPlans, warm_up: WarmUp, session: SparkSession, folder: Path
) -> WarmUpThreads:
    """Starts threads that warm plans up: one for each track, at most one for each core."""
    tracks = sum(pool.tracks for pool in part.local.pools.values()) + bool(part.local.steps)
    at_once = min(tracks, session.sparkContext.defaultParallelism)  # Spark's cores
    return WarmUpThreads(warmth, warm_up, session, folder, at_once)


def await_warmth(
    warmth: WarmPlans, warming: WarmUpThreads, say: Callable[[Progress], None], enough: int | None
) -> None:
    """Waits until enough plans are warm: nothing would be quick before."""

    def is_enough() -> bool:
        progress = warmth.progress()
        if progress is None:
            return True
        say(progress)
        return enough is not None and progress.done >= enough

    warming.wait(is_enough)
