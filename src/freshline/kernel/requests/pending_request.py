"""A request from its submission to its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from freshline.kernel.requests.request import Request, RequestPart

if TYPE_CHECKING:
    from freshline.kernel.requests.task import ClassTask


class PendingRequest:
    """An order's entry for a request, which starts one part after another.

    It is the waiter for its own deadline: then it is over, whatever is done.
    """

    __slots__ = ("deadline", "done", "job", "name", "over", "place", "release", "request", "required", "task")

    def __init__(self, task: ClassTask, request: Request) -> None:
        self.task = task
        self.request = request
        self.name = task.name
        self.place = task.place
        self.release = request.submitted
        self.deadline = request.deadline
        self.done = 0  # parts
        self.job: RequestPart | None = None  # the running part
        self.over = False  # it has been answered
        self.required = 1  # parts that it gets in any case, if its policy has quotas

    @property
    def error(self) -> float:
        """te, the current transaction error."""
        return self.request.error(self.done)

    def begin(self, now: int, track: int) -> RequestPart:
        task = self.task
        task.jobs_started += 1
        job = self.job = RequestPart(self, task.jobs_started, now, track)
        task.parts[job.number] = job
        return job

    def due(self, at: int) -> int | None:
        if not self.over:
            self.task.expired(self, at)
        return None

    def __repr__(self) -> str:
        return f"Pending({self.request.number} of {self.name}, {self.done} parts done)"
