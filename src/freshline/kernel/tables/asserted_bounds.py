"""Which bounds of tables are asserted now: paper 001, Theorems 2 and 3, for both drivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from freshline.kernel.tables.update import Update


class AssertedBounds:
    """The tables with asserted bounds: they were fresh, and nothing has broken since.

    `sources` has the sources of each table, in topological order. A run with empty tables asserts all bounds
    from its start (`from_start`); a run that finds tables asserts each bound once its table is fresh.
    """

    __slots__ = ("_sources", "since")

    def __init__(self, sources: Mapping[str, Sequence[str]], from_start: bool = False) -> None:
        self._sources = sources
        self.since = dict.fromkeys(sources, 0) if from_start else {}  # by table: asserted since then

    def __contains__(self, table: str) -> bool:
        return table in self.since

    def suspend(self, tables: Iterable[str]) -> None:
        """Something broke: bounds of these tables and all downstream count again once they are fresh."""
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
        """An update ends now, before the kernel takes its end: does the bound count from here on?

        It does if the update took all there was, its feed `delivers`, and the bounds of its sources have
        counted since it started. A table that is staler than its bound even then got old data, which is not
        the warehouse's fault. An update that was not `warm` does not count, as costs are those of warm
        updates.
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
