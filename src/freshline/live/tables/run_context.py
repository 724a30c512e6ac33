"""What a run is made of: where it runs, what it has opened, and what its kinds of work share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.events import Event
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.messages import Inbox
from freshline.live.tables.definition_changes import OpenTables
from freshline.live.tables.node_share import NodeShare
from freshline.live.tables.run_records import RunRecords
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.live.warm_up.warm_up_threads import WarmUpThreads
from freshline.planning.plan.plan import Plan
from freshline.planning.plan.step_placement import StepPlacement
from freshline.storage.control.control_folder import ControlFolder
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout
from freshline.storage.delta.ledger import Ledger

if TYPE_CHECKING:
    from freshline.live.tables.loading import Loading

# Which plans are warmed up before the first file is looked for: those that are begun first, all, or none.
Warm = Literal["first", "all", "none"]


@dataclass(frozen=True, slots=True)
class RunSetup:
    """A warehouse, or a node of it, and where it is to run: its files, its storage, its Spark."""

    warehouse: Warehouse
    node: str | None
    landing: Mapping[str, Path]  # by feed
    layout: StorageLayout
    control: ControlFolder  # of this run
    history: Path
    accepted: Sequence[str]  # tables that were changed and go on all the same
    master: str | None
    settings: Mapping[str, str] | None
    session: SparkSession | None  # the caller's, which the caller closes
    warm: Warm


@dataclass(frozen=True, slots=True)
class RunResources:
    """What a run has opened."""

    part: NodeShare
    placed: StepPlacement | None  # where steps run, in a warehouse with nodes
    scratch: Path
    session: SparkSession
    history: History
    ledger: Ledger
    schemas: dict[str, StructType]
    tables: OpenTables
    warmth: WarmPlans
    warming: WarmUpThreads | None


@dataclass(frozen=True, slots=True)
class RunOpening:
    """What a kind of work is made from."""

    setup: RunSetup
    resources: RunResources
    plan: Plan
    kernel: Kernel
    lose: Callable[[str], None]  # the run has to stop, for that reason; any thread may say so


@dataclass(frozen=True, slots=True)
class RunContext:
    """What the kinds of work share while a run goes on."""

    records: RunRecords
    loading: Loading
    inbox: Inbox  # any thread posts to it
    tell: Callable[[Event], None]  # the kernel hears of the event next; for the driver's thread only
    pools: Sequence[str]  # by track, the pool of Spark that its jobs run in
    plan: Callable[[], Plan]  # with the costs that are known by now
