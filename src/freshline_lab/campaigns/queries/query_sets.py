"""Random continuous queries over streams with jumping rates, and whether every answer was in time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import TextIO

from freshline.base.duration import SECOND
from freshline.definitions.sections.pools import Pool, Rescheduling
from freshline.kernel.assembly.query_tracks import track_name
from freshline.kernel.core.events import Event
from freshline.kernel.core.journal import Journal
from freshline.kernel.core.validation import validate
from freshline.kernel.queries.iteration import Iteration
from freshline.kernel.queries.membership import QueryAdded, QueryRemoved
from freshline.kernel.queries.query_spec import QueryMeasure, QuerySpec
from freshline.kernel.queries.rescheduling import Rescheduling as When
from freshline.kernel.queries.task import queries_of
from freshline.planning.analysis.levels import is_schedulable
from freshline.simulation.iterations import IterationOutcome, QueryWindows, SimulatedIterations
from freshline.simulation.streams import ChangingRate, TupleStream
from freshline_lab.runs.query_run import QueryRun

MILLISECOND = SECOND // 1000
RESCHEDULINGS: tuple[Rescheduling, ...] = ("optimistic", "pessimistic", "permissive")
_LENGTH_US = 10 * SECOND


class LinearWindows:
    """A cost for each tuple of some streams, and a fixed cost that may change over time."""

    def __init__(
        self, streams: Sequence[TupleStream], tuple_us: Fraction, fixed_us: Sequence[tuple[int, int]]
    ) -> None:
        self._streams = streams
        self._tuple_us = tuple_us
        self._from = [at for at, _ in fixed_us]
        self._fixed_us = [cost_us for _, cost_us in fixed_us]

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        tuples = sum(stream.tuples(from_us, to_us) for stream in self._streams)
        fixed_us = self._fixed_us[max(0, bisect_right(self._from, to_us) - 1)]
        return QueryMeasure(tuples, fixed_us + max(1, int(self._tuple_us * tuples)), fixed_us, Fraction(1, 2))


class WildWindows:
    """Every window holds something else: measurements do not predict the next window."""

    def __init__(self, seed: str, most_us: int) -> None:
        self._seed = seed
        self._most_us = most_us

    def measure(self, from_us: int, to_us: int) -> QueryMeasure:
        rng = Random(f"{self._seed}:{from_us}:{to_us}")
        cost_us = max(2, int(self._most_us ** rng.random()))
        return QueryMeasure(rng.randint(0, 10**6), cost_us, rng.randrange(cost_us // 2), Fraction(1, 2))


class UnevenParts(SimulatedIterations):
    """Iterations with parts of random length, up to the limit."""

    def __init__(
        self,
        windows: Mapping[str, QueryWindows],
        watch: Callable[[IterationOutcome], None],
        reschedulings: Mapping[str, When],
        rng: Random,
    ) -> None:
        super().__init__(windows, watch, reschedulings)
        self._rng = rng
        self._ends_us: dict[Iteration, int] = {}

    def part_ends_us(self, job: Iteration, ran_us: int) -> int:
        part_us = job.task.asked.part_us
        end_us = self._ends_us.get(job, 0)
        while end_us < ran_us:
            end_us += self._rng.randint(1, part_us) if part_us else ran_us - end_us
        self._ends_us[job] = end_us
        return end_us


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries, their windows, and the queries that join and leave meanwhile."""

    pool: Pool
    at_first: list[QuerySpec]
    windows: dict[str, QueryWindows]
    changes: list[tuple[int, Event]]
    end: int


@dataclass(slots=True)
class QuerySetReport:
    """The outcomes of a set of queries."""

    outcomes: list[IterationOutcome] = field(default_factory=list)
    came: int = 0  # queries that joined during the run
    reschedules: int = 0

    @property
    def missed(self) -> list[IterationOutcome]:
        return [outcome for outcome in self.outcomes if not outcome.met]


def random_queries(seed: int, rescheduling: Rescheduling, end: int = _LENGTH_US) -> QuerySet:
    """Two to eight queries under `lrm`, all of which fit at their least costs at the start."""
    rng = Random(f"queries:{seed}")
    streams = [_jumping(rng, end) for _ in range(3)]
    threshold = Fraction(rng.choice((0, 100, 200_000))) if rescheduling == "permissive" else None
    pool = Pool("p", 1, "lrm", rescheduling=rescheduling, threshold=threshold)
    count = rng.randint(2, 8)
    wild = rng.random() < 0.3
    parts_most_us = rng.choice((0, 5, 50)) * MILLISECOND
    windows: dict[str, QueryWindows] = {}
    at_first: list[QuerySpec] = []
    changes: list[tuple[int, Event]] = []
    for number in range(count + 3):
        name = f"q{number}"
        stride_us = rng.choice((1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)) * 100 * MILLISECOND
        share = Fraction(rng.randint(5, 150), 100 * count)
        windows[name] = _windows(rng, streams, stride_us, share, wild, end)
        asked = _asked(rng, name, stride_us, parts_most_us, windows[name])
        loads = [each.load(each.measure) for each in (*at_first, asked)]
        if number < count and is_schedulable(loads, [load.least_us for load in loads]):
            at_first.append(asked)
        else:
            changes.append((rng.randrange(end), QueryAdded(asked)))
        if rng.random() < 0.3:
            gone_at = max([0, *(at for at, event in changes[-1:] if asked not in at_first)])
            changes.append((rng.randint(gone_at, end), QueryRemoved(name)))
            if rng.random() < 0.5:  # a changed query is a removal and a new one
                other = _asked(rng, name, stride_us, parts_most_us, windows[name])
                changes.append((changes[-1][0], QueryAdded(other)))
    return QuerySet(pool, at_first, windows, changes, end)


def answer(
    queries: QuerySet, seed: int, journal_to: TextIO | None = None, checked: bool = False
) -> QuerySetReport:
    """Answers them in simulated time; `checked` validates the kernel after every instant."""
    seen = QuerySetReport()
    journal = None if journal_to is None else Journal(journal_to, {"seed": seed})
    rng = Random(f"parts:{seed}")
    run = QueryRun(
        queries.pool,
        queries.at_first,
        queries.windows,
        seen.outcomes.append,
        journal,
        lambda windows, watch, times: UnevenParts(windows, watch, times, rng),
    )
    driver = run.driver
    for at, change in queries.changes:
        driver.tell(at, change)
    while checked and driver.next_at <= queries.end:
        driver.step()
        validate(driver.kernel)
    driver.run(queries.end)
    at_first = {asked.name for asked in queries.at_first}
    seen.came = sum(task.name not in at_first for task in queries_of(driver.kernel))
    seen.reschedules = run.rescheduling.times
    return seen


def _asked(rng: Random, name: str, stride_us: int, parts_most_us: int, windows: QueryWindows) -> QuerySpec:
    deadline_us = stride_us if rng.random() < 0.5 else stride_us * rng.randint(50, 100) // 100
    window_us = stride_us * rng.choice((1, 1, 3))
    return QuerySpec(
        name,
        track_name("p", 1),
        window_us,
        stride_us,
        deadline_us,
        rng.randint(0, parts_most_us),
        windows.measure(-window_us, 0),
        Fraction(rng.randint(1, 10)),
        Fraction(rng.choice((0, 0, 10, 50)), 100),
    )


def _windows(
    rng: Random, streams: Sequence[TupleStream], stride_us: int, share: Fraction, wild: bool, end: int
) -> QueryWindows:
    """Windows that take about that share of the track while no rate jumps, if as long as a stride."""
    if wild:
        return WildWindows(str(rng.random()), 4 * stride_us)
    own = rng.sample(streams, rng.randint(1, len(streams)))
    fixed_us = int(share * stride_us * rng.choice((0, 0, 5, 20)) / 100)
    # The measured fixed cost may turn out to be above the whole cost so far.
    fixed = [(0, fixed_us)]
    if rng.random() < 0.2:
        fixed.append((rng.randrange(end), 10 * fixed_us))
    return LinearWindows(own, share * SECOND / (1000 * len(own)), fixed)


def _jumping(rng: Random, end: int) -> ChangingRate:
    """About a thousand tuples a second at first; then rates that jump tenfold within half a second."""
    at, rate = 0, Fraction(1000)
    rates: list[tuple[int, Fraction | int]] = []
    while at < end:
        rates.append((at, rate))
        at += rng.randint(50, 500) * MILLISECOND
        rate = max(Fraction(10), min(Fraction(100_000), rate * rng.choice((10, 1, Fraction(1, 10)))))
    return ChangingRate(rates)
