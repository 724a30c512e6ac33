"""Quotas of parts and admission by forecast: paper 003's errors without the delays of its feedback."""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heappop, heappush
from typing import Any, Final

from freshline.base.duration import SECOND
from freshline.kernel.core.job import Job
from freshline.kernel.policies.quality_of_data import QualityOfData
from freshline.kernel.policies.rates import Flow, Rates
from freshline.kernel.policies.request_order import PERIOD_US, ClassPeriod, RequestOrder
from freshline.kernel.requests.pending_request import PendingRequest
from freshline.kernel.requests.request import Request, RequestPart

_CLOSES: Final = 0.2  # the share of a class's work that fits, below which the class is closed
_OPENS: Final = 0.4  # and above which it is open again
_A_FEW: Final = 2  # requests
_GOAL_GAIN: Final = 0.2
_GOAL_LEAST: Final = 0.5  # of the declared error
_MARGIN: Final = 1.1
_TARGET_LOAD: Final = 0.88  # by required parts and updates, above which updates are discarded
_KNOWN_US: Final = 5 * SECOND  # of estimates, after which older ones are gradually forgotten


class ClassQuota:
    """A class under quotas: its target error, its work and its queues. Work is in µs."""

    __slots__ = ("carried", "closed", "extra", "flow", "goal", "refused_to", "required", "standing", "work")

    def __init__(self, standing: ClassPeriod) -> None:
        self.standing = standing
        self.goal = standing.error  # g
        self.carried = 0.0  # a: the sum of (goal − error) of admitted requests
        self.closed = False
        self.refused_to = 0  # until then a refused request waits, unless another is admitted
        self.work = 0  # required work of open requests, not done
        self.flow = Flow()  # the required work of all submitted requests, admitted or not
        self.required: list[tuple[int, int, PendingRequest]] = []  # by deadline
        self.extra: list[tuple[float, int, int, PendingRequest]] = []  # by error, the largest first

    def quota(self, request: Request) -> int:
        """How many optional parts a request gets, to bring its error nearest to the aim."""
        optional = len(request.parts_us) - 1
        aim = self.goal + self.carried
        return min(optional, max(0, round(optional * (1 - aim))))

    def admitted(self, error: float) -> None:
        """Counts an admitted request, with parts for that error."""
        self.carried = min(1.0, max(-1.0, self.carried + self.goal - error))


class RdsQuota(RequestOrder):
    """Every request gets a quota of parts at its admission; all admitted work can meet its deadline.

    The mandatory part and the quota are required work. Further parts run if no required work waits. Admission
    goes by the work of all requests, admitted or not, the more important first.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.quotas = [ClassQuota(standing) for standing in self.standings]
        self._due: list[tuple[int, int, int, PendingRequest]] = []  # requests with required work, by deadline
        self._quality = QualityOfData(self.update_load * PERIOD_US)
        self._estimated = self._actual = 0.0  # of finished parts
        self._updates = Flow()
        self._rates = Rates([own.flow for own in self.quotas], self._updates)

    def begin(self, now: int) -> None:
        super().begin(now)
        self._rates.begin(now)

    @property
    def cost_factor(self) -> float:
        """η: the cost of parts per µs of their estimates."""
        return self._actual / self._estimated if self._estimated else 1.0

    # -- at arrival --------------------------------------------------------------------------------

    def judge(self, standing: ClassPeriod, pending: PendingRequest, now: int) -> int | None:
        own = self.quotas[standing.place]
        request = pending.request
        quota = own.quota(request)
        work = sum(request.parts_us[: quota + 1])
        self._rates.pass_to(now)
        own.flow.add(work)
        surged = self._rates.surge
        self._rates.heard(request.deadline - request.submitted)
        if self._rates.surge and not surged:
            self._surges()
        retry_after_us = self._refused(own, request, work, now)
        if retry_after_us is not None:
            # A request that would not fit alone keeps no other request waiting.
            if self.cost_factor * work <= self.tracks * (request.deadline - now):
                own.refused_to = now + retry_after_us
            return retry_after_us
        own.refused_to = 0
        own.admitted(request.error(quota + 1))
        pending.required = quota + 1
        own.work += work
        insort(self._due, (pending.deadline, request.number, standing.place, pending))
        return None

    def _refused(self, own: ClassQuota, request: Request, work: int, now: int) -> int | None:
        """None if it is admitted; otherwise in how many µs the client may ask again.

        No request is admitted right after a more important class was refused: a small request may fit where a
        large one did not, and the less important class would get the larger share.
        """
        refused_to = max((other.refused_to for other in self.quotas[: own.standing.place]), default=0)
        if refused_to > now:
            return refused_to - now
        factor = self.cost_factor
        important = sum(self._rates.of(other.flow) for other in self.quotas[: own.standing.place])
        left = self.tracks - self._rates.of(self._updates) - factor * important
        # One or two requests are too few for a rate; `_beyond` checks whether they fit.
        asked = factor * self._rates.of(own.flow) if own.flow.number > _A_FEW else 0.0
        if left <= 0 or left < _CLOSES * asked or (own.closed and left <= _OPENS * asked):
            own.closed = True
            return round(self._rates.memory_us)
        own.closed = False
        beyond_us = self._beyond(own.standing.place, request.deadline, work, left / factor, now)
        return None if beyond_us <= 0 else int(beyond_us * factor / left) + 1

    def _beyond(self, place: int, deadline: int, work: int, left: float, now: int) -> float:
        """By how much the work due exceeds the time left, at the request's deadline or at a later one."""
        demand = work
        later = bisect_left(self._due, (deadline + 1,))
        for _, _, other, pending in self._due[:later]:
            if other <= place:
                demand += required_us(pending)
        beyond = demand - left * (deadline - now)
        for due, _, other, pending in self._due[later:]:
            if other <= place:
                demand += required_us(pending)
                beyond = max(beyond, demand - left * (due - now))
        return beyond

    # -- the next part -----------------------------------------------------------------------------

    def enqueue(self, standing: ClassPeriod, pending: PendingRequest) -> None:
        own = self.quotas[standing.place]
        number = pending.request.number
        if pending.done < pending.required:
            heappush(own.required, (pending.deadline, number, pending))
        else:
            heappush(own.extra, (-pending.error, pending.deadline, number, pending))

    def next_part(self, now: int) -> PendingRequest | None:
        first: ClassQuota | None = None  # the most important one with required work
        urgent: ClassQuota | None = None  # the one with the earliest deadline
        for own in self.quotas:
            queue = own.required
            while queue and queue[0][2].over:
                heappop(queue)
            if queue:
                first = first or own
                if urgent is None or queue[0] < urgent.required[0]:
                    urgent = own
        if first is None or urgent is None:
            return self._further_part()
        chosen = urgent if urgent is first or self._can_wait(urgent, now) else first
        return heappop(chosen.required)[2]

    def _can_wait(self, urgent: ClassQuota, now: int) -> bool:
        """Whether all more important work can wait for a part of that class's first request."""
        more = self.quotas[: urgent.standing.place]
        earliest = min(own.required[0][0] for own in more if own.required)
        work = sum(own.work for own in more)
        pending = urgent.required[0][2]
        spare = earliest - now - _MARGIN * self.cost_factor * work
        return spare > 2 * pending.request.parts_us[pending.done]

    def _further_part(self) -> PendingRequest | None:
        for own in self.quotas:
            while own.extra:
                pending = heappop(own.extra)[3]
                if not pending.over:
                    return pending
        return None

    def queues(self) -> list[list[Any]]:
        return [queue for own in self.quotas for queue in (own.required, own.extra)]

    # -- after a part ------------------------------------------------------------------------------

    def spent(self, standing: ClassPeriod, job: RequestPart, cost_us: int, done: bool) -> None:
        if not done:
            return
        self._estimated += job.estimate_us
        self._actual += cost_us
        if self._estimated > _KNOWN_US:
            self._estimated *= 0.9
            self._actual *= 0.9
        pending = job.pending
        if not pending.over and job.part < pending.required:
            self.quotas[standing.place].work -= job.estimate_us
            if pending.done == pending.required:
                self._forget(pending)

    def gone(self, standing: ClassPeriod, pending: PendingRequest) -> None:
        if pending.done < pending.required:
            self.quotas[standing.place].work -= required_us(pending)
            self._forget(pending)

    def _forget(self, pending: PendingRequest) -> None:
        del self._due[bisect_left(self._due, (pending.deadline, pending.request.number))]

    def ended(self, job: Job, now: int) -> None:
        if type(job) is not RequestPart:
            self.updates_us += now - job.start
            self._rates.pass_to(now)
            self._updates.add(now - job.start)

    # -- at the end of a period --------------------------------------------------------------------

    def period_over(self, now: int) -> None:
        """Goals follow the errors; updates are discarded as far as required work needs their time."""
        for own in self.quotas:
            standing = own.standing
            goal = own.goal - _GOAL_GAIN * (standing.ate - standing.error)
            own.goal = min(standing.error, max(_GOAL_LEAST * standing.error, goal))
            standing.figures = standing.figures._replace(quota=own.goal)
        self._doubt()
        self._rates.pass_to(now)
        self._quality.measured(self.gained_us)
        spare_us = self._spare_us()
        self._quality.change(spare_us if spare_us < 0 else min(spare_us, self.gained_us) / 2)
        self.mwde = self._quality.mwde

    def _doubt(self) -> None:
        """Forgets half of how slow parts were, after a period in which all requests were refused.

        Nothing shows then what parts cost now. One slow moment would have all requests refused for ever.
        """
        asked = [
            own.standing.figures.admitted for own in self.quotas if own.standing.figures.admitted is not None
        ]
        if asked and not any(asked) and not self._due and self._actual > self._estimated:
            self._actual = (self._actual + self._estimated) / 2

    def _surges(self) -> None:
        """Load rises suddenly: updates are discarded at once, not at the end of the period."""
        spare_us = self._spare_us()
        if spare_us < 0:
            self._quality.change(spare_us)
            self.mwde = self._quality.mwde

    def _spare_us(self) -> float:
        """Per period: the target load less required work and updates; below 0 if time is missing."""
        required = self.cost_factor * sum(self._rates.of(own.flow) for own in self.quotas)
        updates = self._rates.of(self._updates)
        return (_TARGET_LOAD * self.tracks - required - updates) * PERIOD_US


def required_us(pending: PendingRequest) -> int:
    """The required work of a request that is still to be done."""
    return sum(pending.request.parts_us[pending.done : pending.required])
