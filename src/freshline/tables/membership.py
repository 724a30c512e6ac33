"""Tables that come to and leave a kernel while it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from freshline.kernel.events import Event, Record
from freshline.kernel.task import RUNNING
from freshline.tables.intake import ContinuousIntake, DerivedIntake, FileIntake, Intake
from freshline.tables.release import PeriodicRelease, Release, StaleRelease
from freshline.tables.task import TableTask

if TYPE_CHECKING:
    from freshline.kernel.kernel import Kernel
    from freshline.tables.update import Update


@dataclass(frozen=True, slots=True)
class Newcomer:
    """All that a kernel has to know of a table that comes to it."""

    name: str
    pool: str
    period_us: int
    worst_case_us: int
    feed: str | None  # of a base table
    arrival: Literal["files", "continuous"] = "files"
    sources: tuple[str, ...] = ()  # of a derived table
    released_by_files: bool = True  # whether there are files somewhere upstream
    align_us: int | None = None
    phase_us: int = 0  # where it is released periodically
    startup_us: int = 0
    freshness: int | None = None  # None where nothing was loaded yet


class Added(Event):
    """A table has come. Of equal jobs its own are the last; what its feed delivers from now on is its own."""

    __slots__ = ("table",)
    priority: ClassVar[int] = 2

    def __init__(self, table: Newcomer) -> None:
        self.table = table

    def take(self, kernel: Kernel, now: int) -> None:
        table = self.table
        pool = next(pool for pool in kernel.pools if pool.name == table.pool)
        assert pool.order.open, f"nobody comes to pool {pool.name} while it runs"
        sources = [kernel.task(name) for name in table.sources]
        tables = [source for source in sources if isinstance(source, TableTask)]
        assert len(tables) == len(sources), f"{table.name} reads something that is no table"
        intake = _intake(table, tables)
        place = max((task.place for task in kernel.tasks), default=-1) + 1
        task = TableTask(place, table.name, table.period_us, table.worst_case_us, intake, table.startup_us)
        task.freshness, task.empty = table.freshness or 0, table.freshness is None
        intake.seen(task.freshness)
        if table.released_by_files:
            task.rule = StaleRelease(task, kernel.timers)
            for source in tables:
                source.dependents.append(task)
            if table.feed is not None:
                kernel.readers.setdefault(table.feed, []).append(task)
        else:
            task.rule = PeriodicRelease(task, table.phase_us, kernel.timers)
        kernel.add(task)
        pool.join(task)
        task.rule.begin(now)

    def record(self) -> Record:
        return {"added": self.table.name, "table": asdict(self.table)}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(Newcomer(**{**record["table"], "sources": tuple(record["table"]["sources"])}))

    def __repr__(self) -> str:
        return f"Added({self.table.name})"


class Removed(Event):
    """A table goes: at once, or when the job that runs has ended well."""

    __slots__ = ("name",)
    priority: ClassVar[int] = 2

    def __init__(self, name: str) -> None:
        self.name = name

    def take(self, kernel: Kernel, now: int) -> None:
        task = kernel.task(self.name)
        assert isinstance(task, TableTask), f"{task!r} is not a table"
        assert task.pool.order.open, f"nobody leaves pool {task.pool.name} while it runs"
        readers = [other for other in kernel.tasks if isinstance(other, TableTask)]
        assert not any(task in other.intake.sources for other in readers), f"{task!r} is read by others"
        for source in task.intake.sources:
            if task in source.dependents:
                source.dependents.remove(task)
        if task.state == RUNNING:
            kernel.timers.drop(task.rule)
            task.rule = Leaving(kernel, task, task.rule)
        else:
            kernel.remove(task)

    def record(self) -> Record:
        return {"removed": self.name}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(record["removed"])

    def __repr__(self) -> str:
        return f"Removed({self.name})"


class Leaving:
    """The rule of a table that goes once its job has ended. A job that fails is tried again before."""

    __slots__ = ("_kernel", "_rule", "_task")

    def __init__(self, kernel: Kernel, task: TableTask, rule: Release) -> None:
        self._kernel = kernel
        self._task = task
        self._rule = rule

    def job_finished(self, now: int, job: Update) -> None:
        self._kernel.remove(self._task)

    def job_failed(self, now: int, job: Update) -> None:
        self._rule.job_failed(now, job)

    def retry(self, now: int) -> None:
        self._rule.retry(now)

    def unfinished_deadlines(self) -> list[int]:
        return self._rule.unfinished_deadlines()

    def may_jump(self, now: int) -> bool:
        return self._rule.may_jump(now)

    def begin(self, now: int) -> None: ...

    def due(self, at: int) -> int | None: ...

    def source_advanced(self, now: int) -> None: ...

    def absorb(self) -> None: ...

    def started_early(self, now: int) -> None: ...

    def validate(self) -> None: ...


def _intake(table: Newcomer, sources: list[TableTask]) -> Intake:
    if table.feed is None:
        return DerivedIntake(sources, table.align_us)
    return ContinuousIntake() if table.arrival == "continuous" else FileIntake()
