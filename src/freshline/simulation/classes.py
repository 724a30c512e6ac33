"""The service classes of a warehouse in simulated time: requests are drawn, and answered as in a run."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import merge
from itertools import count
from math import sqrt
from typing import Any, ClassVar, Final, Self

from freshline.base.duration import MILLISECOND, SECOND, format_duration, seconds
from freshline.base.errors import InputError
from freshline.base.names import Names
from freshline.definitions.sections.classes import PART_MOST_US
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.requests.class_targets import TOLERANCE
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request, RequestPart
from freshline.kernel.requests.task import ClassTask, classes_of
from freshline.planning.costs.requests import PART_ASSUMED_US
from freshline.simulation.kind import SectionResult, SimulationSetup
from freshline.simulation.requests import ExpectedRequest, RequestWatch, SimulatedRequests

PARTS: Final = 8
PARTS_MAX: Final = 256
# A request's deadline in multiples of the estimate of its parts (paper 003 has 10 to 20).
SLACK: Final = 10


@dataclass(frozen=True, slots=True)
class RequestRate:
    """The request rate of a class, the parts of a request, and the estimate of a part."""

    per_second: Fraction
    parts: int = PARTS
    part_us: int = PART_ASSUMED_US

    @property
    def deadline_us(self) -> int:
        """How long after its arrival a request is due."""
        return SLACK * self.parts * self.part_us

    def record(self) -> dict[str, Any]:
        return {"per_second": str(self.per_second), "parts": self.parts, "part_us": self.part_us}


def checked_requests(warehouse: Warehouse, rates: Mapping[str, RequestRate]) -> dict[str, RequestRate]:
    """The rates by class, the most important first."""
    for name, rate in rates.items():
        if not warehouse.classes:
            what = f"there are no classes, but requests of the class `{name}`"
            raise InputError(what, "Define it under `classes`, or leave the requests out")
        if name not in warehouse.classes:
            remedy = Names("classes", warehouse.classes).remedy(name)
            raise InputError(f"the class `{name}` of --requests does not exist", remedy)
        if rate.per_second <= 0:
            raise InputError(f"the class `{name}` has a request rate of zero", "Give a rate above zero")
        if not 1 <= rate.parts <= PARTS_MAX:
            what = f"requests of the class `{name}` have {rate.parts} parts"
            raise InputError(what, f"Give a whole number from 1 to {PARTS_MAX}")
    return {name: rates[name] for name in warehouse.classes if name in rates}


@dataclass(slots=True)
class RequestCounts:
    """Counts of a class's requests."""

    requests: int = 0
    rejected: int = 0
    answered: int = 0  # over: the answer was sent, or the deadline came before the first part was done
    in_time: int = 0  # of them: with at least the first part by the deadline
    unheard: int = 0  # they arrived while the runner was down
    cut_off: int = 0  # they were open when it crashed
    errors: float = 0.0  # of answered requests, the sum of the missing shares of optional parts
    spent_us: int = 0  # time of its parts

    @property
    def admitted(self) -> int:
        return self.requests - self.unheard - self.rejected

    @property
    def open(self) -> int:
        """Admitted, and not over at the end."""
        return self.admitted - self.answered - self.cut_off

    @property
    def lost(self) -> int:
        return self.unheard + self.cut_off


@dataclass(frozen=True, slots=True)
class ClassResult(SectionResult):
    """The result of one class."""

    section: ClassVar[str] = "requests"
    promise: ClassVar[str] = "errors of classes"

    name: str
    rate: RequestRate
    target: float  # the average error that its answers may have
    counts: RequestCounts
    utilization: float  # the share of the pool's tracks that its parts took

    @property
    def admitted_share(self) -> float | None:
        judged = self.counts.admitted + self.counts.rejected
        return self.counts.admitted / judged if judged else None

    @property
    def error(self) -> float | None:
        """The average error of answered requests."""
        return self.counts.errors / self.counts.answered if self.counts.answered else None

    @property
    def holds(self) -> bool:
        """Whether its error is within the target. Runs scatter: `ClassTargets` has the same tolerance."""
        return self.error is None or self.error <= TOLERANCE * self.target

    def record(self) -> dict[str, Any]:
        counts, share, error = self.counts, self.admitted_share, self.error
        return {
            "class": self.name,
            "rate": float(self.rate.per_second),
            "parts": self.rate.parts,
            "part": seconds(self.rate.part_us),
            "deadline": seconds(self.rate.deadline_us),
            "requests": counts.requests,
            "admitted": counts.admitted,
            "admitted_share": None if share is None else round(share, 6),
            "rejected": counts.rejected,
            "answered": counts.answered,
            "answered_in_time": counts.in_time,
            "open": counts.open,
            "lost": counts.lost,
            "error": None if error is None else round(error, 6),
            "error_target": self.target,
            "utilization": round(self.utilization, 6),
        }

    def shown(self) -> dict[str, str]:
        counts, share, error = self.counts, self.admitted_share, self.error
        numbers = {"rejected": counts.rejected, "answered": counts.answered, "in time": counts.in_time}
        numbers |= {"open": counts.open, **({"lost": counts.lost} if counts.lost else {})}
        return {
            "class": self.name,
            "asked": f"{float(self.rate.per_second):g}/s",
            "parts": f"{self.rate.parts} of {format_duration(self.rate.part_us)}",
            "due after": format_duration(self.rate.deadline_us),
            "requests": str(counts.requests),
            "admitted": "-" if share is None else f"{share:.0%}",
            **{column: str(number) for column, number in numbers.items()},
            "error": "-" if error is None else f"{error:.3f}",
            "target": f"{self.target:g}",
            "of the tracks": f"{self.utilization:.0%}",
            "": "" if error is None else "[green]kept[/]" if self.holds else "[red]exceeded[/]",
        }


class _Tallies(RequestWatch):
    """Counts by class."""

    def __init__(self, classes: Iterable[str]) -> None:
        self.of = {name: RequestCounts() for name in classes}

    def submitted(self, request: Request) -> None:
        self.of[request.class_name].requests += 1

    def ended(self, now: int, job: RequestPart) -> None:
        self.of[job.task.name].spent_us += now - job.start

    def answered(self, now: int, answer: AnswerRequest) -> None:
        tally = self.of[answer.request.class_name]
        tally.answered += 1
        tally.in_time += answer.parts_done > 0
        tally.errors += answer.request.error(answer.parts_done)

    def rejected(self, now: int, reject: RejectRequest) -> None:
        self.of[reject.request.class_name].rejected += 1

    def lost(self, request: Request, heard: bool) -> None:
        tally = self.of[request.class_name]
        tally.cut_off += heard
        tally.unheard += not heard


class SimulatedClasses(SimulatedRequests):
    """The classes with requests, at the rates of the run's conditions.

    Arrivals of each class are a Poisson process. The cost of a part is normally distributed around its
    estimate, with the paper's deviation (√x ms of x ms), and never above the limit of parts.
    """

    def __init__(self, setup: SimulationSetup) -> None:
        self._classes = setup.plan.warehouse.classes
        self._tracks = {pool.name: pool.tracks for pool in setup.plan.pools}
        self._rates = setup.conditions.requests
        self._tallies = _Tallies(self._rates)
        self._kernel: Kernel
        super().__init__(_coming(self._rates, setup.seed, setup.conditions.slow), self._tallies)

    @classmethod
    def made_for(cls, setup: SimulationSetup) -> Self | None:
        return cls(setup) if setup.conditions.requests else None

    @classmethod
    def can_be_slow(cls, warehouse: Warehouse) -> Iterable[str]:
        return warehouse.classes

    def begins(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def crashed(self, now: int) -> None:
        self.over(now, self._kernel)
        super().crashed(now)

    def node_crashed(self, now: int, tasks: Collection[str]) -> None:
        self._spent(now, [task for task in classes_of(self._kernel) if task.name in tasks])
        super().node_crashed(now, tasks)

    def over(self, end: int, kernel: Kernel) -> None:
        self._spent(end, classes_of(kernel))

    def _spent(self, now: int, classes: Iterable[ClassTask]) -> None:
        """Counts how long parts have run that end now."""
        for task in classes:
            for job in task.parts.values():
                self._tallies.ended(now, job)

    def results(self, kernel: Kernel, end: int) -> list[ClassResult]:
        results = []
        for name, rate in self._rates.items():
            counts, defined = self._tallies.of[name], self._classes[name]
            tracks_us = self._tracks[defined.pool] * end
            utilization = counts.spent_us / tracks_us if tracks_us else 0.0
            results.append(ClassResult(name, rate, float(defined.error), counts, utilization))
        return results


def _coming(
    rates: Mapping[str, RequestRate], seed: int, slow: Mapping[str, Fraction]
) -> Iterator[ExpectedRequest]:
    """The requests of all classes as they arrive; each (seed, class) has its own random stream."""
    streams = (_of_class(name, rate, seed, slow.get(name, Fraction(1))) for name, rate in rates.items())
    for number, (at, _, name, costs_us) in zip(count(1), merge(*streams), strict=False):
        rate = rates[name]
        expected_us = (rate.part_us,) * rate.parts
        yield ExpectedRequest(Request(number, name, at, at + rate.deadline_us, expected_us), costs_us)


def _of_class(
    name: str, rate: RequestRate, seed: int, factor: Fraction
) -> Iterator[tuple[int, int, str, list[int]]]:
    """(instant, number, class, costs of the parts), without end."""
    rng = random.Random(f"requests:{seed}:{name}")
    mean = rate.part_us / MILLISECOND
    at = 0.0
    for number in count():
        at += rng.expovariate(float(rate.per_second)) * SECOND
        costs = [rng.gauss(mean, sqrt(mean)) * MILLISECOND for _ in range(rate.parts)]
        yield (
            round(at),
            number,
            name,
            [max(1, int(min(max(1, round(cost)), PART_MOST_US) * factor)) for cost in costs],
        )
