"""Which tables' bounds count now: paper 001, Theorems 2 and 3, decided once for both drivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from freshline.kernel.tables.update import Update


class AssertedBounds:
    """The tables whose bounds are asserted: they were fresh, and since then all went well with them.

    `sources` says by table, in topological order, what it is computed from. A run that begins with empty
    tables asserts all bounds from its start on (`from_start`), one that finds tables each once it is fresh.
    """

    __slots__ = ("_sources", "since")

    def __init__(self, sources: Mapping[str, Sequence[str]], from_start: bool = False) -> None:
        self._sources = sources
        self.since = dict.fromkeys(sources, 0) if from_start else {}  # by table, from when on

    def __contains__(self, table: str) -> bool:
        return table in self.since

    def suspend(self, tables: Iterable[str]) -> None:
        """Something broke: their bounds, and those of all downstream, count again once they are fresh."""
        suspended = set(tables)
        if not suspended:
            return
        for table, sources in self._sources.items():
            if table in suspended or not suspended.isdisjoint(sources):
                suspended.add(table)
                self.since.pop(table, None)

    def ended(
        self,
        job: Update,
        freshness: int,
        now: int,
        bound_us: int | None,
        delivers: bool,
        warm: bool = True,
    ) -> None:
        """An update ends now, of which the kernel has not heard yet: does the bound count from here on?

        So it is if the update took all there was, and what the table loads from is as it should be: its feed
        `delivers`, and its sources' bounds have counted since it started, or what it took was old. A table
        that is staler than its bound even then has got old data, which is not the warehouse's doing. After an
        update that was not `warm` when it started it does not count yet: costs are those of warm updates.
        """
        task = job.task
        if (
            task.name not in self.since
            and delivers
            and warm
            and bound_us is not None
            and now - freshness <= bound_us
            and task.intake.caught_up(freshness, task.period_us, job)
            and all(self.since.get(source, now) <= job.start for source in self._sources[task.name])
        ):
            self.since[task.name] = now
