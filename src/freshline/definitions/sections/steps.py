"""Steps: an output with an end-to-end deadline, and all tables that it is computed from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final

from freshline.base.duration import DAY
from freshline.base.errors import NOWHERE, Place
from freshline.base.names import one_of
from freshline.definitions.language.section import Path, Resolution
from freshline.definitions.sections.cost import Cost, cost_from_record
from freshline.definitions.sections.feeds import FEEDS, Feed
from freshline.definitions.sections.nodes import NODES, node_named
from freshline.definitions.sections.table_entry import TableEntry
from freshline.sql.slices import Slices

# Keys that have no effect without a period, and why.
_USELESS: Final = {
    "period_us": "a step has no period: it is released when what it reads advances",
    "phase_us": "it has no effect on a step, which is released when what it reads advances",
    "pool": "it has no effect on a step, which runs on a node",
    "target_lag_us": "it has no effect on a step, whose guarantee is the `deadline` of outputs",
    "late_after_us": "it has no effect on a step, whose guarantee is the `deadline` of outputs",
    "discard": "it has no effect on a step, which loads every file",
    "refresh": "it has no effect on a step, whose rows are appended",
}
_ONLY_STEPS: Final = ("node", "selectivity")


@dataclass(frozen=True, slots=True)
class Step:
    """A table without a period: an output, or a table upstream of one (an operator in paper 002)."""

    name: str
    feed: str | None = None
    sources: tuple[str, ...] = ()
    sql: str | None = None
    select: str | None = None
    timestamp: str | None = None
    lookback_us: int = 0
    lookback_trusted: bool = False
    align_us: int | None = None
    cost: Cost | None = None
    history_us: int = DAY
    place: Place = NOWHERE
    slices: Slices | None = None
    nodes: tuple[str, ...] | None = None  # where it may run; its feed's node if it loads one; None: anywhere
    deadline_us: int | None = None  # of an output: how old a record may be at its commit here
    selectivity: Fraction = Fraction(1)  # rows out per row in
    weight: Fraction = Fraction(1)  # of an output: of those that cannot all be in time, the larger goes first

    @property
    def is_whole(self) -> bool:
        """Whether every update replaces all rows: never, the rows of a step are appended."""
        return False


def step_names(entries: Mapping[str, TableEntry], sources: Mapping[str, Sequence[str]]) -> set[str]:
    """The tables with a deadline, and all tables that they are computed from."""
    found: set[str] = set()
    ahead = [name for name, entry in entries.items() if entry.deadline_us is not None]
    while ahead:
        name = ahead.pop()
        if name in entries and name not in found:
            found.add(name)
            ahead += sources[name]
    return found


def make_step(
    resolution: Resolution, name: str, entry: TableEntry, sources: tuple[str, ...], timestamp: str | None
) -> Step:
    """The step of an entry; reports its errors."""
    path = ("tables", name)
    _check_keys(resolution, path, entry)
    return Step(
        name=name,
        feed=entry.feed,
        sources=sources,
        sql=entry.sql,
        select=entry.select,
        timestamp=timestamp,
        lookback_us=entry.lookback_us or 0,
        lookback_trusted=entry.lookback_trusted is True,
        align_us=entry.align_us,
        cost=None if entry.cost is None else entry.cost.resolved(),
        history_us=entry.history_us or resolution.history_us or DAY,
        place=resolution.place(path),
        slices=None if entry.slices is None else entry.slices.resolved(),
        nodes=_nodes(resolution, path, entry),
        deadline_us=entry.deadline_us,
        selectivity=Fraction(1) if entry.selectivity is None else entry.selectivity,
        weight=Fraction(1) if entry.weight is None else entry.weight,
    )


def check_no_step(resolution: Resolution, name: str, entry: TableEntry, is_whole: bool) -> None:
    """Reports keys that have no effect on a table with a period."""
    path = ("tables", name)
    remedy = "Remove it, or add a `deadline` to the table, or to one that is computed from it"
    for key in _ONLY_STEPS:
        if getattr(entry, key) is not None:
            resolution.report((*path, key), "it has no effect on a table without an output", remedy)
    if entry.cost is not None and entry.cost.per_row_us and not is_whole:
        what = "it has no effect on a table with a period whose rows are appended"
        resolution.report((*path, "cost", "per_row"), what, "Use `rate`, seconds of work a second of data")


def check_feeds(resolution: Resolution, loaded: set[str]) -> None:
    """Reports keys that have no effect on a feed that no step loads, if there are no other errors."""
    if resolution.errors:
        return
    for name, entry in resolution.entries(FEEDS).items():
        for key, value in (("age", entry.age_us), ("burst", entry.burst)):
            if value is not None and name not in loaded and entry.arrival == "files":
                remedy = "Remove it, or add a `deadline` to a table that is computed from it"
                resolution.report(("feeds", name, key), "it has no effect without an output", remedy)


def _check_keys(resolution: Resolution, path: Path, entry: TableEntry) -> None:
    if not resolution.names(NODES).all:
        if entry.deadline_us is not None:
            remedy = "Add one, such as `nodes: {here: {master: 'local[1]'}}`"
            resolution.report((*path, "deadline"), "there are no `nodes` that an output could run on", remedy)
        return
    for key, what in _USELESS.items():
        if getattr(entry, key) is not None:
            written = TableEntry.model_fields[key].alias or key
            resolution.report((*path, written), what, "Remove it")
    if entry.weight is not None and entry.deadline_us is None:
        what = "it has no effect on a step without a `deadline`"
        resolution.report((*path, "weight"), what, "Move it to an output that is computed from this")
    if entry.cost is not None and entry.cost.rate:
        what = "it has no effect on a step, which costs by its rows"
        resolution.report((*path, "cost", "rate"), what, "Use `per_row`, such as `per_row: 200us`")
    if entry.lookback_trusted and not entry.lookback_us:
        remedy = "Remove it, or add `lookback`"
        resolution.report((*path, "lookback_trusted"), "it has no effect without `lookback`", remedy)
    if entry.feed is not None:
        _check_feed(resolution, path, entry)


def _check_feed(resolution: Resolution, path: Path, entry: TableEntry) -> None:
    assert entry.feed is not None
    names = resolution.names(FEEDS)
    if not names.has(entry.feed):
        remedy = names.remedy(entry.feed)
        resolution.report((*path, "feed"), f"there is no feed `{entry.feed}`", remedy)
    feed = _feed(resolution, entry)
    if feed is not None and feed.arrival == "continuous":
        what = f"its feed `{entry.feed}` is continuous, and outputs follow files"
        resolution.report((*path, "feed"), what, "Let its data come in files (`arrival: files`)")


def _nodes(resolution: Resolution, path: Path, entry: TableEntry) -> tuple[str, ...] | None:
    given = entry.node if resolution.names(NODES).all else None
    named = [node_named(resolution, path, each) for each in dict.fromkeys(given or ())]
    nodes = tuple(each for each in named if each is not None) or None
    feed = _feed(resolution, entry)
    if feed is None or feed.node is None:
        return nodes
    if nodes is not None and feed.node not in nodes:
        what = f"its feed `{feed.name}` is on the node `{feed.node}`, where it is loaded"
        resolution.report((*path, "node"), what, f"Remove it, or move the feed to {one_of(nodes)}")
    return (feed.node,)


def _feed(resolution: Resolution, entry: TableEntry) -> Feed | None:
    return None if entry.feed is None else resolution.records(FEEDS).get(entry.feed)


def step_record(step: Step) -> dict[str, Any]:
    """A step as a record for JSON; its fractions still have to become text."""
    record = asdict(step)
    del record["place"]
    return record


def step_from_record(record: dict[str, Any]) -> Step:
    """Reads a step that was written as JSON."""
    slices = None if record["slices"] is None else Slices(**record["slices"])
    record = {**record}
    one = record.pop("node", None)  # as earlier versions wrote it
    nodes = record.get("nodes") or (one and [one])
    known = {
        "nodes": None if nodes is None else tuple(nodes),
        "sources": tuple(record["sources"]),
        "cost": cost_from_record(record["cost"]),
        "slices": slices,
        "selectivity": Fraction(record["selectivity"]),
        "weight": Fraction(record.get("weight", 1)),
    }
    return Step(**{**record, **known})
