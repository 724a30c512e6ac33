"""Compares a live run with its promises. A broken one needs a broken assumption that the status names."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.definitions.sections.steps import Step
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.live.status.status import WarehouseStatus
from freshline.storage.control.layout import StorageLayout
from freshline_lab.campaigns.promises.asking import Asking
from freshline_lab.campaigns.promises.commits import commits_of

_LOOK_EVERY_S = 0.5
_ALLOWED = 1.1  # by how much an answer over HTTP may pass its deadline
_PREFIX = re.compile(r"^\+\S+( \S+s)? ")


class StatusWatch:
    """Keeps the last status of every process of every node: the counts of a killed one end with it."""

    def __init__(self, layout: StorageLayout, nodes: Sequence[str]) -> None:
        self._controls = layout.controls(nodes)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="statuses", daemon=True)
        self._last: dict[str, WarehouseStatus] = {}  # by run

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
    """All promises of a run."""

    def __init__(self, warehouse: Warehouse, statuses: Sequence[WarehouseStatus], storage: Path) -> None:
        self._warehouse = warehouse
        self._statuses = statuses
        self._layout = StorageLayout(storage)
        self._stored: dict[str, Table | Step] = {**warehouse.tables, **warehouse.steps}
        self._lines = [f"{status.node}: {line}" for status in statuses for line in status.broken_assumptions]

    def tables(self) -> Iterator[Verdict]:
        """The worst staleness of each table beside its bound."""
        for status in self._statuses:
            for row in status.tables:
                bound_us, worst_us = row.staleness_bound_us, row.staleness_max_us
                if bound_us is None or worst_us is None:
                    yield Verdict(f"table {row.name}", False, f"bound {bound_us}, staleness {worst_us}")
                    continue
                kept = worst_us <= bound_us
                found = f"{worst_us / SECOND:.1f} s stale, bound {bound_us / SECOND:.1f} s, {row.jobs} jobs"
                because = () if kept else self.named(self._table_names(row.name))
                yield Verdict(f"table {row.name}", kept, found, because)

    def outputs(self, start: int) -> Iterator[Verdict]:
        """The ages of all rows at their commits beside the deadline."""
        for name, step in self._warehouse.steps.items():
            if step.deadline_us is None:
                continue
            commits = commits_of(self._layout.table(name))
            late = [each for each in commits if each.age_us > step.deadline_us]
            rows = sum(each.at - row > step.deadline_us for each in commits for row in each.rows)
            worst_s = max(each.age_us for each in commits) / SECOND
            found = f"{sum(len(each.rows) for each in commits)} rows, the oldest {worst_s:.1f} s, "
            found += f"deadline {step.deadline_us / SECOND:.0f} s, {rows} rows late"
            if late:
                when = ", ".join(f"{(each.at - start) / SECOND:.0f}" for each in late)
                found += f" (commits at second {when})"
            because = self.named(self._step_names(name)) if late else ()
            yield Verdict(f"output {name}", not late, found, because)

    def queries(self) -> Iterator[Verdict]:
        for status in self._statuses:
            for row in status.queries:
                keep = "-" if row.keep_mean is None else f"{row.keep_mean:.0%}"
                found = f"{row.iterations} answers, {row.misses} missed, read {keep} on average"
                because = (row.missed_because,) if row.misses and row.missed_because else ()
                yield Verdict(f"query {row.name}", not row.misses, found, because)

    def classes(self, asking: Asking, unreached: bool) -> Iterator[Verdict]:
        """Every request is answered or rejected by its deadline. `unreached`: the service was killed."""
        for name, asked in asking.asked.items():
            longest_s = max((each.took_s for each in asked), default=0.0)
            counts = asking.counts(name)
            known = {"complete", "estimated", "rejected"} | ({"nobody"} if unreached else set())
            wrong = {answer: count for answer, count in counts.items() if answer not in known}
            kept = not wrong and longest_s <= _ALLOWED * asking.deadline_s
            found = f"{dict(counts)}, the longest took {longest_s:.2f} s of {asking.deadline_s:.0f} s"
            states = [row for status in self._statuses for row in status.classes if row.name == name]
            found += "".join(f"; {row.state}, error {row.error_mean} of {row.error}" for row in states)
            pool = self._warehouse.classes[name].pool
            because = () if kept else self.named(self._in_pool(pool))
            yield Verdict(f"class {name}", kept, found, because)

    def named(self, names: Iterable[str]) -> tuple[str, ...]:
        """The lines of the status about one of these tables, steps, feeds or pools."""
        found = []
        for line in self._lines:
            text = _PREFIX.sub("", line.partition(": ")[2])
            if any(text.startswith((f"{name}:", f"feed {name} ", f"feed {name}:")) for name in names):
                found.append(line)
        return tuple(found)

    def _in_pool(self, pool: str) -> set[str]:
        return {name for name, table in self._warehouse.tables.items() if table.pool == pool}

    def _table_names(self, name: str) -> set[str]:
        """A table, all upstream of it, and the tables of its pool."""
        found = self._upstream(name) | self._in_pool(self._warehouse.tables[name].pool)
        return self._with_feeds(found)

    def _step_names(self, name: str) -> set[str]:
        """The steps upstream of an output, and those on their nodes."""
        upstream = self._upstream(name)
        nodes = {node for each in upstream for node in self._warehouse.nodes_of(each)}
        beside = {each for each in self._warehouse.steps if nodes & {*self._warehouse.nodes_of(each)}}
        return self._with_feeds(upstream) | beside

    def _upstream(self, name: str) -> set[str]:
        stored = self._stored
        found, ahead = {name}, [name]
        while ahead:
            sources = set(stored[ahead.pop()].sources) - found
            found |= sources
            ahead += sources
        return found

    def _with_feeds(self, names: set[str]) -> set[str]:
        stored = self._stored
        return names | {feed for name in names if (feed := stored[name].feed) is not None}
