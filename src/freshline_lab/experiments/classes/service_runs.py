"""One simulated run of paper 003's workload, with its measures in each period."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Final

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.pools import Gains
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.policies.request_order import PERIOD_US
from freshline.kernel.requests.request import AnswerRequest, RejectRequest, Request, RequestPart
from freshline.kernel.requests.service import Service, service_of
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.requests import RequestWatch, SimulatedRequests
from freshline_lab.experiments.classes.service_workload import (
    Loads,
    WorkloadObjects,
    class_names,
    requests,
    streams,
    warehouse,
)

PERIOD_S: Final = PERIOD_US // SECOND


@dataclass(slots=True)
class PeriodCounts:
    """Counts of a class's requests in one period."""

    submitted: int = 0
    rejected: int = 0
    ended: int = 0
    unanswered: int = 0
    errors: float = 0.0
    squares: float = 0.0

    @property
    def ate(self) -> float:
        return self.errors / self.ended if self.ended else 0.0

    @property
    def sdte(self) -> float | None:
        if self.ended < 2:
            return None
        return sqrt(max(0.0, (self.squares - self.errors**2 / self.ended) / (self.ended - 1)))

    @property
    def admitted(self) -> float:
        return 1 - self.rejected / self.submitted if self.submitted else 1.0

    @property
    def answered(self) -> float:
        return (self.ended - self.unanswered) / self.submitted if self.submitted else 1.0


@dataclass(slots=True)
class ClassCourse:
    """A run, period by period."""

    counts: list[list[PeriodCounts]]  # by class
    capacity_s: list[list[float]]  # by class: c(k), or without servers the time of its parts
    mwde: list[float] = field(default_factory=list)
    parts: int = 0


class _Watch(RequestWatch):
    """Counts the outcomes of requests, by class and period."""

    def __init__(self, periods: int, objects: WorkloadObjects) -> None:
        names = class_names()
        self.course = ClassCourse(
            [[PeriodCounts() for _ in range(periods)] for _ in names], [[0.0] * periods for _ in names]
        )
        self._by_name = dict(zip(names, self.course.counts, strict=True))
        self._spent_s = dict(zip(names, self.course.capacity_s, strict=True))
        self._objects = objects

    def submitted(self, request: Request) -> None:
        counts = self._counts(request, request.submitted)
        if counts is not None:
            counts.submitted += 1

    def started(self, now: int, job: RequestPart) -> None:
        self.course.parts += 1
        self._objects.read(now, job)

    def ended(self, now: int, job: RequestPart) -> None:
        spent_s = self._spent_s[job.task.name]
        period = now // PERIOD_US
        if period < len(spent_s):
            spent_s[period] += (now - job.start) / SECOND

    def answered(self, now: int, answer: AnswerRequest) -> None:
        counts = self._counts(answer.request, now)
        if counts is not None:
            error = answer.request.error(answer.parts_done)
            counts.ended += 1
            counts.unanswered += answer.parts_done == 0
            counts.errors += error
            counts.squares += error * error

    def rejected(self, now: int, reject: RejectRequest) -> None:
        counts = self._counts(reject.request, now)
        if counts is not None:
            counts.rejected += 1

    def _counts(self, request: Request, at: int) -> PeriodCounts | None:
        periods = self._by_name[request.class_name]
        period = at // PERIOD_US
        return periods[period] if period < len(periods) else None


def simulate_classes(
    policy: PolicyName,
    loads: Loads,
    seed: int,
    seconds: int,
    error: float = 0.0,
    gains: Gains = "fixed",
) -> ClassCourse:
    """A run of that many seconds."""
    end = seconds * SECOND
    objects = streams(seed)
    plan = make_plan(warehouse(policy, objects, gains))
    kernel = assemble(plan)
    service = service_of(kernel.pools[0])
    assert service is not None
    data = WorkloadObjects(objects, service, seed, end)
    watch = _Watch(seconds // PERIOD_S, data)
    kind = SimulatedRequests(requests(seed, loads, error), watch)
    driver = SimulatedDriver(kernel, {RequestPart: kind, Update: data}, {}, None, kind.listeners)
    data.attach(driver)
    kind.attach(driver)
    course = watch.course
    for period in range(seconds // PERIOD_S):
        capacities_s = _capacities_s(service)
        driver.advance((period + 1) * PERIOD_US - 1)
        course.mwde.append(service.mwde)
        for place, capacity_s in enumerate(capacities_s):
            course.capacity_s[place][period] = capacity_s
    return course


def _capacities_s(service: Service) -> list[float]:
    """c(k) of the servers, if there are any."""
    servers = getattr(service, "servers", ())
    return [server.capacity / SECOND for server in servers]
