"""Tables that come to and leave a kernel while it runs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, ClassVar, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.core.task import RUNNING
from freshline.kernel.tables.release import Release
from freshline.kernel.tables.remote_table import source_named
from freshline.kernel.tables.table_spec import TableSpec, make_task
from freshline.kernel.tables.task import TableTask, tables_of

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.tables.update import Update


class TableAdded(Event):
    """A table has come. Of equal jobs its own are the last; what its feed delivers from now on is its own."""

    __slots__ = ("table",)
    priority: ClassVar[int] = 2

    def __init__(self, table: TableSpec) -> None:
        self.table = table

    def take(self, kernel: Kernel, now: int) -> None:
        table = self.table
        pool = next(pool for pool in kernel.pools if pool.name == table.pool)
        assert pool.order.open, f"nobody comes to pool {pool.name} while it runs"
        sources = [source_named(kernel, name) for name in table.sources]
        place = max((task.place for task in kernel.tasks), default=-1) + 1
        task = make_task(kernel, table, place, sources)
        kernel.add(task)
        pool.join(task)
        task.rule.begin(now)

    def record(self) -> Record:
        return {"added": self.table.name, "table": asdict(self.table)}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(TableSpec(**{**record["table"], "sources": tuple(record["table"]["sources"])}))

    def __repr__(self) -> str:
        return f"Added({self.table.name})"


class TableRemoved(Event):
    """A table goes: at once, or when the job that runs has ended well."""

    __slots__ = ("name",)
    priority: ClassVar[int] = 2

    def __init__(self, name: str) -> None:
        self.name = name

    def take(self, kernel: Kernel, now: int) -> None:
        task = kernel.task(self.name)
        assert isinstance(task, TableTask), f"{task!r} is not a table"
        assert task.pool.order.open, f"nobody leaves pool {task.pool.name} while it runs"
        is_read = any(task in other.intake.sources for other in tables_of(kernel))
        assert not is_read, f"{task!r} is read by others"
        for source in task.intake.sources:
            if task in source.dependents:
                source.dependents.remove(task)
        if task.state == RUNNING:
            kernel.timers.drop(task.rule)
            task.rule = LeavingRelease(kernel, task, task.rule)
        else:
            kernel.remove(task)

    def record(self) -> Record:
        return {"removed": self.name}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(record["removed"])

    def __repr__(self) -> str:
        return f"Removed({self.name})"


class LeavingRelease:
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
