"""The results of the tables of a live run, and what preceded the lag of a healthy one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from freshline.base.duration import SECOND
from freshline.testing.network import FeedSpec, Generator
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.outages.outage_feeds import DOWN, is_short

# A shorter gap between two jobs on a track is not idle time.
HANDOVER_US: Final = 50_000
BEHIND_MAX: Final = 8  # sentences

FileCosts = tuple[int, int]  # of the updates of a short file and of a long one, in ms
Loads = dict[str, list[tuple[int, int]]]  # by table: (instant, freshness reached)


@dataclass(frozen=True, slots=True)
class TableVerdict:
    """The result of one table, in its periods; for a late one, when it had caught up."""

    table: str
    lag_max: float
    lag_max_at_s: float  # when it first was that high
    staleness_max: float
    caught_up_s: float | None
    behind_s: tuple[float, ...]  # each time its lag rose above its period


@dataclass(frozen=True, slots=True)
class LoggedUpdate:
    """One update of a table, from the run's log."""

    table: str
    start: int
    end: int
    freshness: int


def judge(
    loads: Loads, feeds: list[FeedSpec], generator: Generator, start: int, end: int
) -> list[TableVerdict]:
    """The same for Freshline and others: from the arrivals and the loads of files."""
    return [_verdict(loads.get(spec.name, []), spec, generator, start, end) for spec in feeds]


def _verdict(
    loads: list[tuple[int, int]], spec: FeedSpec, generator: Generator, start: int, end: int
) -> TableVerdict:
    numbers = generator.numbers(spec.name, end)
    events = [(generator.delivered_us(spec.name, n), 1, generator.due_us(spec.name, n)) for n in numbers]
    # A load goes before an arrival at the same instant: lag counts just before.
    events += [(at, 0, reached) for at, reached in loads if at <= end]
    edge = fresh = worst_at = start
    lag_us = lag_max_us = staleness_max_us = 0
    caught_up: int | None = start
    behind = []
    for at, kind, instant in sorted(events):
        staleness_max_us = max(staleness_max_us, at - fresh)
        if kind:
            edge = max(edge, instant)
        else:
            fresh = max(fresh, instant)
        lag_us = edge - fresh
        if lag_us > lag_max_us:
            lag_max_us, worst_at = lag_us, at
        if lag_us <= spec.period_us:
            caught_up = at if caught_up is None else caught_up
        elif caught_up is not None:
            caught_up = None
            behind.append((at - start) / SECOND)
    late = bool(spec.outages) and lag_max_us > spec.period_us
    return TableVerdict(
        spec.name,
        lag_max_us / spec.period_us,
        (worst_at - start) / SECOND,
        staleness_max_us / spec.period_us,
        (caught_up - start) / SECOND if late and caught_up is not None else None,
        tuple(behind),
    )


def healthy(verdicts: Sequence[TableVerdict]) -> list[TableVerdict]:
    """The tables whose feed was not down."""
    return [verdict for verdict in verdicts if verdict.table not in ("t1", "t2", "t3", "t4")]


def show(name: str, verdicts: list[TableVerdict], busy: float | None, noise: str) -> None:
    worst_lag = max(healthy(verdicts), key=lambda verdict: verdict.lag_max)
    worst_staleness = max(healthy(verdicts), key=lambda verdict: verdict.staleness_max)
    tracks = "" if busy is None else f", {busy:.0%} of two tracks busy"
    print(f"{name}{tracks}")
    print(
        f"  healthy tables: worst lag {worst_lag.lag_max:.2f} periods ({worst_lag.table}, first at "
        f"{worst_lag.lag_max_at_s:.0f} s), "
        f"worst staleness {worst_staleness.staleness_max:.2f} periods ({worst_staleness.table})"
    )
    for verdict in verdicts[:4]:
        when = "not caught up" if verdict.caught_up_s is None else f"caught up at {verdict.caught_up_s:.0f} s"
        print(f"  {verdict.table}: {when} (down until {DOWN[1]:.0f} s)")
    print(f"  {noise}", flush=True)


def fell_behind(
    verdicts: Sequence[TableVerdict],
    updates: Sequence[LoggedUpdate],
    start: int,
    tracks: int,
    costs_ms: FileCosts,
    noise: Noise,
) -> Iterator[str]:
    """For each time a healthy table fell behind: since when all tracks were busy, and with what.

    A schedulable set is late only if an update takes longer than declared, or a file is found later. So this
    shows which assumption broke, and when.
    """
    times = sorted((at_s, verdict.table) for verdict in healthy(verdicts) for at_s in verdict.behind_s)
    for at_s, table in times[:BEHIND_MAX]:
        at = start + round(at_s * SECOND)
        since = busy_since(updates, tracks, _waited_until(updates, table, at))
        ran = [update for update in updates if update.end > since and update.start < at]
        over_us = [over for update in ran if (over := overrun_us(update, costs_ms)) > 0]
        yield (
            f"{table} fell behind at {at_s:.1f} s; tracks busy from {(since - start) / SECOND:.1f} s on: of "
            f"{len(ran)} updates {len(over_us)} took longer than declared, {sum(over_us) / SECOND:.1f} s in "
            f"all{noise.beside(since / SECOND, at / SECOND)}"
        )
    if len(times) > BEHIND_MAX:
        yield f"and {len(times) - BEHIND_MAX} times more, until {times[-1][0]:.0f} s"


def _waited_until(updates: Sequence[LoggedUpdate], table: str, at: int) -> int:
    """The start of its own update, if that runs: what made it late came before."""
    return next((own.start for own in updates if own.table == table and own.start < at < own.end), at)


def busy_since(updates: Sequence[LoggedUpdate], tracks: int, at: int) -> int:
    """Since when all tracks were busy up to `at`; `at` itself if one was idle.

    >>> updates = [LoggedUpdate("t1", 0, 500_000, 0), LoggedUpdate("t2", 200_000, 900_000, 0)]
    >>> [busy_since(updates, 2, at) for at in (100_000, 400_000, 800_000)]
    [100000, 200000, 800000]
    """
    edges = [(update.start, -1) for update in updates]
    edges += [(update.end + HANDOVER_US, 1) for update in updates]
    free, since = tracks, at
    for instant, step in sorted(edge for edge in edges if edge[0] < at):
        if step < 0 and free == 1:
            since = instant
        free += step
    return since if free <= 0 else at


def overrun_us(update: LoggedUpdate, costs_ms: FileCosts) -> int:
    """How much longer it took than declared; at most 0 if it did not."""
    declared_ms = costs_ms[0] if is_short(update.table) else costs_ms[1]
    return update.end - update.start - declared_ms * 1_000
