"""Checks that every arrived file was loaded once, and in order."""

from __future__ import annotations

from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.tables.events import DataFile
from freshline.kernel.tables.task import tables_of
from freshline.kernel.tables.update import Update
from freshline.simulation.conditions.outages import Outages
from freshline.simulation.simulated_run import files_of


class LoadedOnce:
    """A witness of a simulated run: each update continues from the last one, with the next files.

    The seed gives the expected files. `wrong` lists what was loaded twice, forgotten or out of order.
    """

    def __init__(self, warehouse: Warehouse, seed: int, outages: Outages) -> None:
        self.files = 0
        self.wrong: list[str] = []
        self._freshness = dict.fromkeys(warehouse.tables, 0)
        self._feeds = {
            name: files_of(warehouse.feeds[table.feed], seed, outages.get(table.feed, ()))
            for name, table in warehouse.tables.items()
            if table.feed is not None and warehouse.feeds[table.feed].arrival == "files"
        }
        self._next = {name: self._file_of(name) for name in self._feeds}

    def _file_of(self, table: str) -> tuple[int, DataFile]:
        """The next file with any data."""
        while True:
            coming = self._feeds[table].next()
            assert coming is not None, "feeds go on for ever"
            if coming[1].timestamp > 0:
                return coming

    def finished(self, now: int, job: Update, freshness: int) -> None:
        name = job.task.name
        if job.loaded_from != self._freshness[name]:
            self.wrong.append(f"{job!r} at {now} does not go on from {self._freshness[name]}")
        self._freshness[name] = freshness
        if name in self._feeds and not job.files:
            self.wrong.append(f"{job!r} at {now} loads no file")
        for file in job.files:
            arrival, expected = self._next[name]
            if file != expected or arrival > job.start:
                self.wrong.append(f"{job!r} at {now} loads {file}, not {expected} of {arrival}")
            self.files += 1
            self._next[name] = self._file_of(name)

    def ended(self, end: int, kernel: Kernel) -> None:
        """The run is over: checks that what is not loaded is in the backlog."""
        for task in tables_of(kernel):
            if task.freshness != self._freshness[task.name]:
                self.wrong.append(f"{task!r} is at {task.freshness}, loaded to {self._freshness[task.name]}")
            if task.name not in self._feeds:
                continue
            came: list[DataFile] = []
            while self._next[task.name][0] <= end:
                came.append(self._next[task.name][1])
                self._next[task.name] = self._file_of(task.name)
            if list(task.intake.unloaded(task.job)) != came:
                self.wrong.append(f"{task!r} has other files left than came")
