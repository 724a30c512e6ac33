"""A kernel for each node, as a live run has them, driven as one: a node can crash and start again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import Event, Instruction, JobEvent
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.node_events import NodeStarted, NodeStopped
from freshline.kernel.core.task import FeedReader, Task
from freshline.kernel.core.timers import NEVER
from freshline.kernel.requests.events import RequestArrived
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.kernel.tables.remote_table import RemoteAdvanced
from freshline.planning.plan.plan import Plan


class NodeKernels(Kernel):
    """The kernels of all nodes. Each hears at once what the others commit, and nothing else of them.

    While a node is down, its tasks stay as they were; what is meant for it is lost, except for files.
    """

    def __init__(self, plan: Plan, now: int = 0, freshness: Mapping[str, int | None] | None = None) -> None:
        super().__init__()
        self._plan = plan
        self._of: dict[str, Kernel] = {}
        self._tracks_from: dict[str, int] = {}
        self._down: dict[str, list[FileArrived]] = {}  # by node: the files that came since
        tracks = 0
        for node in plan.warehouse.nodes:
            self._tracks_from[node] = tracks
            self._of[node] = assemble(plan, now, freshness, tracks, live=False, node=node)
            tracks += sum(pool.tracks for pool in self._of[node].pools)
        self.now = now
        self._gather()

    def of(self, node: str) -> Kernel:
        """The node's kernel; if it is down, its last one."""
        return self._of[node]

    @property
    def wake_at(self) -> int:
        return min((kernel.wake_at for _, kernel in self._up()), default=NEVER)

    def handle(self, now: int, events: Sequence[Event], closing: bool = False) -> list[Instruction]:
        assert now >= self.now, f"time went back from {self.now} to {now}"
        self.now = now
        pending: dict[str, list[Event]] = {}
        for event in events:
            if isinstance(event, NodeStopped):
                self._down[event.node] = []
            elif isinstance(event, NodeStarted):
                pending[event.node] = self._start(event.node, now)
        for event in events:
            if not isinstance(event, NodeStopped | NodeStarted):
                for node in self._concerned(event):
                    pending.setdefault(node, []).append(event)
        instructions: list[Instruction] = []
        while True:
            for node, kernel in self._up():
                if node in pending or (kernel.wake_at <= now and not closing):
                    instructions += kernel.handle(now, pending.pop(node, ()), closing)
            pending = self._news(now)
            if not pending:
                return instructions

    def _up(self) -> list[tuple[str, Kernel]]:
        return [(node, kernel) for node, kernel in self._of.items() if node not in self._down]

    def _concerned(self, event: Event) -> Iterable[str]:
        """The nodes that an event is for, and that are up. Files are kept for a node that is down."""
        if isinstance(event, FileArrived):
            for node, missed in self._down.items():
                if event.feed in self._of[node].readers:
                    missed.append(event)
        task = None
        if isinstance(event, JobEvent):
            task = event.job.task
        elif isinstance(event, RequestArrived):
            task = self.task(event.request.class_name)
        return [node for node, kernel in self._up() if task is None or task in kernel.tasks]

    def _news(self, now: int) -> dict[str, list[Event]]:
        """By node that is up: what it has not heard of other nodes."""
        news: dict[str, list[Event]] = {}
        for node, kernel in self._up():
            for name, known in kernel.elsewhere.items():
                source = self.task(name)
                freshness: int = source.freshness  # type: ignore[attr-defined]  # a table or a step
                if freshness > known.freshness:
                    came_at = getattr(source, "came_at", None)
                    recovery = getattr(source, "moved_in_recovery", False)
                    told = RemoteAdvanced(name, freshness, came_at, now, recovery)
                    news.setdefault(node, []).append(told)
        return news

    def _start(self, node: str, now: int) -> list[Event]:
        """Makes a new kernel for a node, and returns the files that it finds."""
        lost = self._of[node]
        files = [*_unloaded(lost.readers), *self._down.pop(node)]
        stored = self._plan.warehouse.stored
        freshness = {name: self.task(name).freshness for name in stored}  # type: ignore[attr-defined]
        tracks_from = self._tracks_from[node]
        self._of[node] = assemble(self._plan, now, freshness, tracks_from, live=False, node=node)
        self._gather()
        files.sort(key=lambda each: (each.file.timestamp, each.feed, each.file))
        return [*files]

    def _gather(self) -> None:
        kernels = self._of.values()
        self.tasks = sorted((task for kernel in kernels for task in kernel.tasks), key=_place)
        self._by_name = {task.name: task for task in self.tasks}
        self.pools = [pool for kernel in kernels for pool in kernel.pools]
        self.readers = {}
        for kernel in kernels:
            for feed, readers in kernel.readers.items():
                self.readers.setdefault(feed, []).extend(readers)


def _unloaded(readers: Mapping[str, Iterable[FeedReader]]) -> Iterable[FileArrived]:
    """The files that some readers of a lost kernel have not loaded."""
    for feed, each in readers.items():
        missing: dict[DataFile, set[str]] = {}
        for reader in each:
            for file in reader.unloaded():
                missing.setdefault(file, set()).add(reader.name)
        for file, names in missing.items():
            yield FileArrived(feed, file, frozenset(names))


def _place(task: Task) -> int:
    return task.place
