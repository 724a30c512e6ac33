"""Tables that join and leave a kernel while it runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from freshline.kernel.core.events import Event, Record
from freshline.kernel.core.task import RUNNING
from freshline.kernel.tables.release import Release
from freshline.kernel.tables.remote_table import source_named
from freshline.kernel.tables.table_spec import TableSpec, make_task
from freshline.kernel.tables.task import TableTask, tables_of

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel
    from freshline.kernel.tables.update import Update


@dataclass(slots=True, eq=False)
class TableAdded(Event):
    """A table was added. It comes last in ties, and loads what its feed delivers from now on."""

    word = "added"
    priority = 2
    table: TableSpec

    def take(self, kernel: Kernel, now: int) -> None:
        table = self.table
        pool = next(pool for pool in kernel.pools if pool.name == table.pool)
        assert pool.order.open, f"no table can join pool {pool.name} while it runs"
        sources = [source_named(kernel, name) for name in table.sources]
        place = max((task.place for task in kernel.tasks), default=-1) + 1
        task = make_task(kernel, table, place, sources)
        kernel.add(task)
        pool.join(task)
        task.rule.begin(now)

    def record(self) -> Record:
        return {self.word: self.table.name, "table": asdict(self.table)}

    @classmethod
    def from_record(cls, record: Record, kernel: Kernel) -> Self:
        return cls(TableSpec(**{**record["table"], "sources": tuple(record["table"]["sources"])}))


@dataclass(slots=True, eq=False)
class TableRemoved(Event):
    """A table was removed. It leaves at once, or when its running job has succeeded."""

    word = "removed"
    keys = (("name", word),)
    priority = 2
    name: str

    def take(self, kernel: Kernel, now: int) -> None:
        task = kernel.task(self.name)
        assert isinstance(task, TableTask), f"{task!r} is not a table"
        assert task.pool.order.open, f"no table can leave pool {task.pool.name} while it runs"
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


class LeavingRelease(Release):
    """The rule of a table that leaves after its running job. A failed job is retried first."""

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
