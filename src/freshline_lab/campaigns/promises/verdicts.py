"""Compares a live run with its promises. A broken one needs a broken assumption that the status names.

Only a note counts that was made between the oldest late row and its commit, about something that the promise
depends on.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from freshline.base.duration import SECOND, parse_duration
from freshline.base.errors import InputError
from freshline.definitions.sections.steps import Step
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.tables.state import exceeds
from freshline.live.status.status import WarehouseStatus
from freshline.storage.control.layout import StorageLayout
from freshline_lab.campaigns.promises.clients import Asked, Clients
from freshline_lab.campaigns.promises.commits import commits_of

_LOOK_EVERY_S = 0.5
_ALLOWED = 1.1  # by how much an answer over HTTP may pass its deadline
_NOTE = re.compile(r"^\+((?:[\d.]+(?:h|m|s|ms|us|µs) )+)(.*)$")
_DIED = "the run before died"
Window = tuple[int, int]


class StatusWatch:
    """Keeps the last status of every process of every node: the counts of a killed one end with it."""

    def __init__(self, layout: StorageLayout, nodes: Sequence[str]) -> None:
        self._controls = layout.controls(nodes)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statuses", daemon=True)
        self._last: dict[str, WarehouseStatus] = {}  # by run
        self.above_bound: dict[str, list[int]] = {}  # by table: when it was seen staler than its bound

    def __enter__(self) -> StatusWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)
        self._look()

    @property
    def statuses(self) -> list[WarehouseStatus]:
        """In the order of their starts."""
        return sorted(self._last.values(), key=lambda status: status.started_us)

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        for control in self._controls:
            try:
                status = WarehouseStatus.read(control.status)
            except InputError:
                continue
            self._last[status.run_id] = status
            for row in status.tables:
                if exceeds(row.staleness_us(status.at_us), row.staleness_bound_us):
                    self.above_bound.setdefault(row.name, []).append(status.at_us)


@dataclass(frozen=True, slots=True)
class Note:
    """A line of a status: the node that names it, and when."""

    node: str | None
    at: int
    text: str

    def is_about(self, names: Collection[str], nodes: Collection[str]) -> bool:
        """Whether it is about one of these tables, steps or feeds, or the death of one of these nodes."""
        if self.text.startswith(_DIED):
            return self.node in nodes
        return any(
            self.text.startswith((f"{name}:", f"feed {name} ", f"feed {name}:", f"{name} ")) for name in names
        )


def notes_of(statuses: Iterable[WarehouseStatus]) -> list[Note]:
    """All notes of these statuses; each begins with the time since the start."""
    found = []
    for status in statuses:
        for line in status.broken_assumptions:
            match = _NOTE.match(line)
            assert match is not None, line
            since_us = sum(parse_duration(each) for each in match[1].split())
            found.append(Note(status.node, status.started_us + since_us, match[2]))
    return found


@dataclass(frozen=True, slots=True)
class Verdict:
    """A promise and what became of it."""

    what: str
    kept: bool
    found: str
    because: tuple[str, ...] = ()  # lines of the status that name a broken assumption of it

    @property
    def is_explained(self) -> bool:
        return self.kept or bool(self.because)

    def __str__(self) -> str:
        word = "kept" if self.kept else "BROKEN, explained" if self.because else "BROKEN, NOT EXPLAINED"
        return "\n".join([f"{self.what}: {word}: {self.found}", *(f"    {line}" for line in self.because)])


class Verdicts:
    """All promises of a run from `start` to `end`."""

    def __init__(self, warehouse: Warehouse, watch: StatusWatch, storage: Path, run: Window) -> None:
        self._warehouse = warehouse
        self._above_bound = watch.above_bound
        self._statuses = watch.statuses
        self._notes = notes_of(self._statuses)
        self._layout = StorageLayout(storage)
        self._start, self._end = run
        self._stored: dict[str, Table | Step] = {**warehouse.tables, **warehouse.steps}

    def tables(self) -> Iterator[Verdict]:
        """The worst staleness of each table beside its bound."""
        for status in self._statuses:
            for row in status.tables:
                bound_us, worst_us = row.staleness_bound_us, row.staleness_max_us
                if bound_us is None or worst_us is None:
                    yield Verdict(f"table {row.name}", False, f"bound {bound_us}, staleness {worst_us}")
                    continue
                found = f"{worst_us / SECOND:.1f} s stale, bound {bound_us / SECOND:.1f} s, {row.jobs} jobs"
                seen = self._above_bound.get(row.name)
                window = (seen[0] - bound_us, seen[-1]) if seen else (self._start, self._end)
                kept = worst_us <= bound_us
                because = (
                    () if kept else self._named(self._table_names(row.name), self._nodes(row.name), window)
                )
                yield Verdict(f"table {row.name}", kept, found, because)

    def outputs(self) -> Iterator[Verdict]:
        """The ages of rows at their commits, or at the end of the run, beside the deadline."""
        for name, step in self._warehouse.steps.items():
            if step.deadline_us is None:
                continue
            commits = commits_of(self._layout.table(name))
            ages_us = [min(each.at, self._end) - row for each in commits for row in each.rows]
            late = [each for each in commits if min(each.at, self._end) - min(each.rows) > step.deadline_us]
            found = f"{len(ages_us)} rows, the oldest {max(ages_us) / SECOND:.1f} s, "
            found += f"deadline {step.deadline_us / SECOND:.0f} s, "
            found += f"{sum(age > step.deadline_us for age in ages_us)} rows late"
            unexplained, because = [], set[str]()
            for each in late:
                window = (min(each.rows), min(each.at, self._end))
                named = self._named(self._step_names(name), self._nodes(name), window)
                because |= {*named}
                if not named:
                    unexplained.append(each.at)
            when = ", ".join(f"{(each.at - self._start) / SECOND:.0f}" for each in late)
            found += f" (commits at second {when})" if late else ""
            if unexplained:
                without = ", ".join(f"{(at - self._start) / SECOND:.0f}" for at in unexplained)
                found += f"; no reason is named for {without}"
                because = set()
            yield Verdict(f"output {name}", not late, found, tuple(sorted(because)))

    def queries(self) -> Iterator[Verdict]:
        for status in self._statuses:
            for row in status.queries:
                keep = "-" if row.keep_mean is None else f"{row.keep_mean:.0%}"
                found = f"{row.iterations} answers, {row.misses} missed, read {keep} on average"
                because = (row.missed_because,) if row.misses and row.missed_because else ()
                yield Verdict(f"query {row.name}", not row.misses, found, because)

    def classes(self, asking: Clients, killed: str) -> Iterator[Verdict]:
        """Every request is answered or rejected by its deadline; none is while its node is down."""
        for name, asked in asking.asked.items():
            pool = self._warehouse.pools[self._warehouse.classes[name].pool]
            longest_s = max((each.took_s for each in asked), default=0.0)
            counts = asking.counts(name)
            known = {"complete", "estimated", "rejected"} | ({"nobody"} if pool.node == killed else set())
            wrong = [each for each in asked if each.answer not in known]
            kept = not wrong and longest_s <= _ALLOWED * asking.deadline_s
            found = f"{dict(counts)}, the longest took {longest_s:.2f} s of {asking.deadline_s:.0f} s"
            states = [row for status in self._statuses for row in status.classes if row.name == name]
            found += "".join(f"; {row.state}, error {row.error_mean} of {row.error}" for row in states)
            if wrong:
                when = ", ".join(f"{each.at - self._start / SECOND:.0f} {each.answer}" for each in wrong)
                found += f"; at second {when}"
            late = [each for each in asked if each in wrong or each.took_s > _ALLOWED * asking.deadline_s]
            named = [
                self._named(self._in_pool(pool.name), (), (round(each.at * SECOND), self._ended(each)))
                for each in late
            ]
            because = tuple(sorted({line for lines in named for line in lines})) if all(named) else ()
            yield Verdict(f"class {name}", kept, found, because)

    @staticmethod
    def _ended(asked: Asked) -> int:
        return round((asked.at + asked.took_s) * SECOND)

    def _named(self, names: Collection[str], nodes: Collection[str], window: Window) -> tuple[str, ...]:
        """The notes of that time about one of these names, or the death of one of these nodes."""
        return tuple(
            f"{note.node} at second {(note.at - self._start) / SECOND:.0f}: {note.text}"
            for note in self._notes
            if window[0] <= note.at <= window[1] and note.is_about(names, nodes)
        )

    def _nodes(self, name: str) -> set[str]:
        """The nodes of a table or step, and of all upstream of it."""
        found: set[str] = set()
        for each in self._upstream(name):
            table = self._warehouse.tables.get(each)
            node = None if table is None else self._warehouse.pools[table.pool].node
            found |= {node} if node is not None else {*self._warehouse.nodes_of(each)}
        return found

    def _in_pool(self, pool: str) -> set[str]:
        return {name for name, table in self._warehouse.tables.items() if table.pool == pool}

    def _table_names(self, name: str) -> set[str]:
        """A table, all upstream of it, and the tables of its pool."""
        return self._with_feeds(self._upstream(name)) | self._in_pool(self._warehouse.tables[name].pool)

    def _step_names(self, name: str) -> set[str]:
        """The steps upstream of an output, and those on their nodes."""
        nodes = self._nodes(name)
        beside = {each for each in self._warehouse.steps if nodes & {*self._warehouse.nodes_of(each)}}
        return self._with_feeds(self._upstream(name)) | beside

    def _upstream(self, name: str) -> set[str]:
        found, ahead = {name}, [name]
        while ahead:
            sources = set(self._stored[ahead.pop()].sources) - found
            found |= sources
            ahead += sources
        return found

    def _with_feeds(self, names: set[str]) -> set[str]:
        return names | {feed for name in names if (feed := self._stored[name].feed) is not None}
