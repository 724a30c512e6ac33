"""The objects of a run: its setup, its open resources, and the context that its kinds of work share."""

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

# The plans to warm up before the search for files: the first ones, all, or none.
Warm = Literal["first", "all", "none"]


@dataclass(frozen=True, slots=True)
class RunSetup:
    """A warehouse, or a node of it, with its landing directories, storage and Spark."""

    warehouse: Warehouse
    node: str | None
    landing: Mapping[str, Path]  # by feed
    layout: StorageLayout
    control: ControlFolder  # of this run
    history: Path
    accepted: Sequence[str]  # changed tables that continue all the same
    master: str | None
    settings: Mapping[str, str] | None
    session: SparkSession | None  # the caller's, which the caller closes
    warm: Warm


@dataclass(frozen=True, slots=True)
class RunResources:
    """The open resources of a run."""

    part: NodeShare
    placed: StepPlacement | None  # the placement of steps, in a warehouse with nodes
    scratch: Path
    session: SparkSession
    history: History
    ledger: Ledger
    schemas: dict[str, StructType]
    tables: OpenTables
    warmth: WarmPlans
    warming: WarmUpThreads | None
    died_at: int | None = None  # when the run before was last alive, if it died


@dataclass(frozen=True, slots=True)
class RunOpening:
    """The arguments of a kind of work."""

    setup: RunSetup
    resources: RunResources
    plan: Plan
    kernel: Kernel
    lose: Callable[[str], None]  # stops the run for that reason; any thread may call it


@dataclass(frozen=True, slots=True)
class RunContext:
    """The objects that the kinds of work share during a run."""

    records: RunRecords
    loading: Loading
    inbox: Inbox  # any thread posts to it
    tell: Callable[[Event], None]  # passes an event to the kernel; for the driver's thread only
    pools: Sequence[str]  # by track: the Spark pool of its jobs
    plan: Callable[[], Plan]  # with the costs known by now
