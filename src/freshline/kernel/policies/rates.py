"""Estimates how much work arrives, from recent arrivals."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt
from typing import Final

from freshline.base.duration import SECOND

_MEMORY_LEAST_US: Final = 2 * SECOND
_DEADLINES: Final = 8  # the memory in requests' times to their deadlines, if that is longer
_QUICK: Final = 0.15  # of the memory: that of the quick rate
_AVERAGED: Final = 64  # requests, for their average time to the deadline
_SIGMAS: Final = 4  # standard deviations by which the quick rate must exceed the slow one
_SPREAD: Final = 1.25  # E[w²]/E[w]² of the work of requests


class Flow:
    """Arrived work of one kind, with slow and quick exponential decay."""

    __slots__ = ("number", "quick", "slow")

    def __init__(self) -> None:
        self.slow = self.quick = 0.0  # µs of work
        self.number = 0.0  # of pieces, with slow decay

    def add(self, work_us: int) -> None:
        self.slow += work_us
        self.quick += work_us
        self.number += 1


class Rates:
    """The rates of several flows, in µs of work per µs.

    Work and elapsed time decay exponentially alike: their ratio is the rate from the first instant on. The
    quick rate counts if a rate rises far more than by chance. It counts for all requests if their sum
    does (`surge`), which shows earlier.
    """

    def __init__(self, requests: Sequence[Flow], updates: Flow) -> None:
        self.memory_us = float(_MEMORY_LEAST_US)
        self.surge = False
        self._requests = requests
        self._flows = [*requests, updates]
        self._slow_us = self._quick_us = 1.0  # elapsed time, with the decay of the flows
        self._time_us = 0.0  # that requests have until their deadlines, on average
        self._heard = 0
        self._began = self._now = 0

    def begin(self, now: int) -> None:
        self._began = self._now = now

    def heard(self, time_us: int) -> None:
        """A request with that much time came: the longer it is, the longer is the memory."""
        self._heard = min(_AVERAGED, self._heard + 1)
        self._time_us += (time_us - self._time_us) / self._heard
        self.memory_us = max(_MEMORY_LEAST_US, _DEADLINES * self._time_us)
        together = Flow()
        for flow in self._requests:
            together.slow += flow.slow
            together.quick += flow.quick
            together.number += flow.number
        self.surge = self._rises(together)

    def pass_to(self, now: int) -> None:
        """Lets time pass until then."""
        passed_us = now - self._now
        if passed_us <= 0:
            return
        self._now = now
        quick_us = _QUICK * self.memory_us
        slow, quick = exp(-passed_us / self.memory_us), exp(-passed_us / quick_us)
        self._slow_us = self._slow_us * slow + self.memory_us * (1 - slow)
        self._quick_us = self._quick_us * quick + quick_us * (1 - quick)
        for flow in self._flows:
            flow.slow *= slow
            flow.number *= slow
            flow.quick *= quick

    def of(self, flow: Flow) -> float:
        """The rate of a flow at the current instant."""
        slow, quick = flow.slow / self._slow_us, flow.quick / self._quick_us
        return quick if quick > slow and (self.surge or self._rises(flow)) else slow

    def _rises(self, flow: Flow) -> bool:
        """Whether its quick rate exceeds the slow one by more than chance."""
        if not flow.number or self._now - self._began < self.memory_us / 2:
            return False
        slow, quick = flow.slow / self._slow_us, flow.quick / self._quick_us
        if quick <= slow:
            return False
        deviation = sqrt(slow * _SPREAD * flow.slow / flow.number / (2 * _QUICK * self.memory_us))
        return quick > slow + _SIGMAS * deviation
