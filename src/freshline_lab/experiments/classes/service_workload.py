"""The workload of paper 003, section 5.2: updates of 1,000 objects, and requests of four classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from freshline.base.duration import MILLISECOND, SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.classes import ServiceClass
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.pools import Gains, Pool
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.events import Event
from freshline.kernel.core.timers import NEVER
from freshline.kernel.requests.events import UpdateDiscarded
from freshline.kernel.requests.request import Request, RequestPart
from freshline.kernel.requests.service import Service
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.kind import SimulatedKind
from freshline.simulation.requests import ExpectedRequest

OBJECTS: Final = 1_000
# By class: ate_r and def (section 4.1), and its share of the requests.
CLASSES: Final = (("0.3", "1", 0.2), ("0.2", "3", 0.2), ("0.4", "0.3", 0.3), ("0.5", "0.1", 0.3))
FACTOR_FALLS: Final = 0.1  # by which an object's data error factor falls in a second
MEAN_WORK_US: Final = 6.5 * 2_500  # of a request: 1 + U{1…10} parts of U(1, 4) ms
_BLOCK: Final = 2_048  # requests drawn at once

# From an instant on (s), the load in percent.
Loads = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class UpdateStream:
    """An object's updates."""

    name: str
    period_us: int
    phase_us: int
    estimate_us: int
    mean: float  # av
    deviation: float  # of the values around it


def streams(seed: int) -> list[UpdateStream]:
    """The objects of a run."""
    rng = np.random.default_rng([seed, 1])
    periods = rng.uniform(100 * MILLISECOND, 50 * SECOND, OBJECTS)
    phases = rng.uniform(0, 1, OBJECTS) * periods
    estimates = rng.uniform(1, 5, OBJECTS) * MILLISECOND
    means = rng.uniform(0, 100, OBJECTS)
    factors = rng.uniform(0, 0.5, OBJECTS)
    return [
        UpdateStream(
            f"o{number}", round(period), 1 + round(phase), round(estimate), mean, (mean * factor) ** 0.5
        )
        for number, (period, phase, estimate, mean, factor) in enumerate(
            zip(periods, phases, estimates, means, factors, strict=True)
        )
    ]


def warehouse(policy: PolicyName, objects: Sequence[UpdateStream], gains: Gains = "fixed") -> Warehouse:
    """The paper's classes and objects on one track; each object is a table with its own feed."""
    names = [each.name for each in objects]
    return Warehouse(
        name="service-classes",
        storage="./warehouse",
        pools={"main": Pool("main", 1, policy, gains=gains)},
        feeds={each.name: Feed(each.name, "files", each.period_us) for each in objects},
        tables={
            each.name: Table(
                each.name, "main", each.period_us, feed=each.name, cost=Cost(each.estimate_us, Fraction(0))
            )
            for each in objects
        },
        topological_order=tuple(names),
        released_by_files=frozenset(names),
        classes={
            name: ServiceClass(name, "main", Fraction(error), Fraction(factor))
            for name, (error, factor, _) in zip(class_names(), CLASSES, strict=True)
        },
    )


def class_names() -> list[str]:
    return [f"class_{number}" for number in range(1, len(CLASSES) + 1)]


def requests(seed: int, loads: Loads, error: float = 0.0) -> Iterator[ExpectedRequest]:
    """Poisson arrivals at those loads; actual costs are 1 + `error` times the estimates on average."""
    rng = np.random.default_rng([seed, 2])
    names = class_names()
    shares = [share for _, _, share in CLASSES]
    at, number = 0.0, 0
    while True:
        kinds = rng.choice(len(names), _BLOCK, p=shares)
        parts = rng.integers(2, 12, _BLOCK)
        estimates = rng.uniform(1, 4, int(parts.sum())) * MILLISECOND
        actual = _costs_us(rng, (1 + error) * estimates)
        slack = rng.uniform(10, 20, _BLOCK)
        gaps = rng.exponential(MEAN_WORK_US * (1 + error), _BLOCK)
        expected = np.rint(estimates).astype(int).tolist()
        costs = actual.tolist()
        begin = 0
        for place in range(_BLOCK):
            at = _after(at, float(gaps[place]), loads)
            number += 1
            end = begin + int(parts[place])
            own = tuple(expected[begin:end])
            submitted = round(at)
            deadline = submitted + round(sum(own) * slack[place])
            yield ExpectedRequest(
                Request(number, names[kinds[place]], submitted, deadline, own), costs[begin:end]
            )
            begin = end


def _after(at: float, gap: float, loads: Loads) -> float:
    """The instant at which `gap` µs of work at a load of 100 % have come since `at`."""
    for place, (_, load) in enumerate(loads):
        until = loads[place + 1][0] * SECOND if place + 1 < len(loads) else float("inf")
        if at >= until:
            continue
        reached = at + gap * 100 / load
        if reached <= until:
            return reached
        gap -= (until - at) * load / 100
        at = until
    return at


def _costs_us(rng: np.random.Generator, means_us: np.ndarray) -> np.ndarray:
    """N(x, √x), where √x is the standard deviation in ms; at least 1 µs."""
    means = means_us / MILLISECOND
    drawn = rng.normal(means, np.sqrt(means)) * MILLISECOND
    return np.maximum(1, np.rint(drawn)).astype(int)


class WorkloadObjects(SimulatedKind[Update]):
    """The objects during a run: their updates as jobs, and which of them are discarded."""

    def __init__(self, objects: Sequence[UpdateStream], service: Service, seed: int, end_us: int) -> None:
        self._objects = objects
        self._service = service
        self._end_us = end_us
        self._rng = np.random.default_rng([seed, 3])
        self._numbers = {each.name: number for number, each in enumerate(objects)}
        self._values = [each.mean for each in objects]  # cv
        factors = [float(Fraction(factor)) for _, factor, _ in CLASSES]
        self._least = min(factors)
        self._by_class = dict(zip(class_names(), factors, strict=True))
        self._factors = [self._least] * len(objects)  # def, when last raised
        self._raised_at = [0] * len(objects)
        self._reads: list[int] = []  # the objects that the next parts read

    def attach(self, driver: SimulatedDriver, end: int = NEVER) -> None:
        self._tell = driver.tell
        for number, each in enumerate(self._objects):
            self._expect(number, each.phase_us)

    def read(self, now: int, job: RequestPart) -> None:
        """A part reads an object, which must be precise enough for its class from now on."""
        if not self._reads:
            self._reads = self._rng.integers(0, len(self._objects), 4_096).tolist()
        number = self._reads.pop()
        factor = self._by_class[job.task.name]
        if factor > self._factor(number, now):
            self._factors[number] = factor
            self._raised_at[number] = now

    def _factor(self, number: int, now: int) -> float:
        fallen = FACTOR_FALLS * (now - self._raised_at[number]) / SECOND
        return max(self._least, self._factors[number] - fallen)

    def _expect(self, number: int, at: int) -> None:
        if at <= self._end_us:
            self._tell(at, lambda now: self._comes(number, now))

    def _comes(self, number: int, now: int) -> Event:
        stream = self._objects[number]
        self._expect(number, now + stream.period_us)
        value = self._rng.normal(stream.mean, stream.deviation)
        stored = self._values[number]
        weighted = abs(stored - value) * self._factor(number, now)
        if weighted <= self._service.mwde * abs(stored):
            return UpdateDiscarded(stream.name, stream.estimate_us)
        self._values[number] = value
        return FileArrived(stream.name, DataFile(now, now))

    # -- their updates as jobs ----------------------------------------------------------------------

    def cost_us(self, job: Update) -> int:
        mean = self._objects[self._numbers[job.task.name]].estimate_us / MILLISECOND
        drawn = float(self._rng.normal(mean, mean**0.5))
        return max(1, round(drawn * MILLISECOND))

    def ended(self, now: int, job: Update) -> Event:
        return UpdateFinished(job, job.loaded_to)
