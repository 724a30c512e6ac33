"""RDS of paper 003: a server for each class; feedback moves its capacity until errors are as declared."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any, ClassVar, Final

from freshline.kernel.policies.quality_of_data import QualityOfData
from freshline.kernel.policies.request_order import PERIOD_US, ClassPeriod, RequestOrder
from freshline.kernel.requests.pending_request import PendingRequest
from freshline.kernel.requests.request import RequestPart

_ALPHA: Final = 0.5  # of the moving average of the updates' time (figure 5, line 1)
_POLE: Final = 0.5  # of the closed loop, at the load that the gains are for

Key = tuple[float, float, int, int]


class DeferrableServer:
    """A class's deferrable server (paper 003, section 4.3), in µs of work."""

    __slots__ = (
        "admitted",
        "capacity",
        "debt",
        "left",
        "offered",
        "offered_last",
        "queue",
        "rejects",
        "share",
        "standing",
        "submitted",
        "submitted_last",
    )

    def __init__(self, standing: ClassPeriod, capacity: float, share: float) -> None:
        self.standing = standing
        self.capacity = capacity  # c(k)
        self.left = capacity  # of the capacity, in this period; below 0 after a part has overdrawn it
        self.rejects = 0.0  # r(k): how much to reject in a period
        self.debt = 0.0  # how much of that is outstanding
        self.share = share  # of a period, at the load that the gains are for
        self.submitted = self.submitted_last = 0
        self.admitted = 0
        # What `rejects` did not reject, and so reached the overload resolver.
        self.offered = self.offered_last = 0
        self.queue: list[tuple[Key, PendingRequest]] = []

    def next_period(self) -> None:
        self.left = self.capacity
        self.submitted_last, self.submitted = self.submitted, 0
        self.offered_last, self.offered = self.offered, 0
        self.admitted = 0

    def owes(self, work: int) -> bool:
        """Whether to reject this request for `rejects`; rejections are spread over the period."""
        if self.rejects <= 0:
            return False
        part = min(1.0, self.rejects / self.submitted_last) if self.submitted_last else 1.0
        self.debt += work * part
        if 2 * self.debt < work:
            return False
        self.debt -= work
        return True


class Rds(RequestOrder):
    """Updates first, then the servers by importance while they have capacity (paper 003, section 4.3).

    Capacities are allocated anew in every period (figure 5). To make room it discards updates, then rejects
    requests. A server without capacity does not run, even on an idle track; a part may overdraw the rest.
    """

    idles: ClassVar[bool] = True

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        updates_us = self.update_load * PERIOD_US
        number = max(1, len(self.standings))
        capacity = max(0.0, self.capacity_us - updates_us) / number
        share = self.capacity_us / number
        self.servers = [DeferrableServer(standing, capacity, share) for standing in self.standings]
        self._updates_us = updates_us  # c^Update, averaged
        self._quality = QualityOfData(updates_us)

    # -- at arrival --------------------------------------------------------------------------------

    def judge(self, standing: ClassPeriod, pending: PendingRequest, now: int) -> int | None:
        server = self.servers[standing.place]
        work = sum(pending.request.parts_us)
        server.submitted += work
        if server.owes(work) or not self._resolved(server, work):
            return max(1, self.ends_at - now)
        server.admitted += work
        return None

    def _resolved(self, server: DeferrableServer, work: int) -> bool:
        """The overload resolver: takes what exceeds the last period from the less important classes."""
        server.offered += work
        if server.offered <= server.offered_last or server.admitted + work <= server.capacity:
            return True
        lesser = self.servers[server.standing.place + 1 :]
        if sum(max(0.0, other.left) for other in lesser) < work:
            return False
        missing = float(work)
        for other in reversed(lesser):
            taken = min(missing, max(0.0, other.left))
            other.left -= taken
            missing -= taken
        server.left += work
        return True

    # -- the next part -----------------------------------------------------------------------------

    def rank(self, pending: PendingRequest) -> Key:
        """Of a class's requests the one with the lowest rank goes first."""
        raise NotImplementedError

    def enqueue(self, standing: ClassPeriod, pending: PendingRequest) -> None:
        heappush(self.servers[standing.place].queue, (self.rank(pending), pending))

    def next_part(self, now: int) -> PendingRequest | None:
        for server in self.servers:
            queue = server.queue
            while queue and queue[0][1].over:
                heappop(queue)
            if queue and server.left > 0:
                return heappop(queue)[1]
        return None

    def queues(self) -> list[list[Any]]:
        return [server.queue for server in self.servers]

    def spent(self, standing: ClassPeriod, job: RequestPart, cost_us: int, done: bool) -> None:
        self.servers[standing.place].left -= cost_us

    # -- at the end of a period --------------------------------------------------------------------

    def period_over(self, now: int) -> None:
        """Figure 5, ComputeCapacity."""
        quality = self._quality
        quality.measured(self.gained_us)
        self._updates_us = _ALPHA * self.updates_us + (1 - _ALPHA) * self._updates_us
        used = self._updates_us
        for server in self.servers:
            used = self._allocate(server, used)
        spare = self.capacity_us - used
        if spare > 0:
            spare = max(0.0, spare - quality.change(spare))
            for server in self.servers:
                server.capacity += spare / len(self.servers)
        for server in self.servers:
            server.next_period()
        self.mwde = quality.mwde

    def _allocate(self, server: DeferrableServer, used: float) -> float:
        """Lines 4 to 21: gives a server its capacity; returns the capacity used so far."""
        change = self._quality.change
        asked = max(0.0, server.capacity + self._gain(server) * (server.standing.ate - server.standing.error))
        if self.capacity_us - used < asked:
            used += change(self.capacity_us - used - asked)
        given = max(0.0, min(self.capacity_us - used, asked))
        used += given
        if given < asked:
            server.rejects += asked - given
        elif server.rejects > 0:
            if self.capacity_us - used < server.rejects:
                used += change(self.capacity_us - used - server.rejects)
            fewer = min(server.rejects, max(0.0, self.capacity_us - used))
            server.rejects -= fewer
            given += fewer
            used += fewer
        server.capacity = given
        return used

    def _gain(self, server: DeferrableServer) -> float:
        """How much more capacity an error of 1 above the declared one gets.

        The error falls by 1 with the work of the class: its share at a load of 100 %, or the work admitted in
        the last period.
        """
        work = server.admitted if self.gains == "scheduled" and server.admitted else server.share
        return (1 - _POLE) * work


class RdsEdf(Rds):
    """The earliest deadline of a class goes first; mandatory parts before optional ones."""

    def rank(self, pending: PendingRequest) -> Key:
        return (0 if pending.done == 0 else 1, pending.deadline, pending.request.number, 0)


class RdsHef(Rds):
    """The highest error of a class goes first; mandatory parts before optional ones."""

    def rank(self, pending: PendingRequest) -> Key:
        mandatory = pending.done == 0
        return (0 if mandatory else 1, -pending.error, pending.deadline, pending.request.number)
