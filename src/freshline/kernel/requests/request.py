"""A client's request, its parts and its outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from freshline.kernel.core.events import Instruction, Record
from freshline.kernel.core.job import Job

if TYPE_CHECKING:
    from freshline.kernel.requests.pending_request import PendingRequest
    from freshline.kernel.requests.task import ClassTask


class Request(NamedTuple):
    """A request in parts: the first is mandatory, each further one makes the answer better."""

    number: int  # unique in the run
    class_name: str
    submitted: int
    deadline: int
    parts_us: tuple[int, ...]  # estimated cost of each part; at least the mandatory one
    tables: tuple[str, ...] = ()  # that it reads, if known

    def error(self, parts_done: int) -> float:
        """te, the transaction error: 1 without the mandatory part, 0 when all is done (n = 1).

        >>> request = Request(1, "gold", 0, 100, (5, 5, 5, 5, 5))
        >>> [request.error(done) for done in range(6)]
        [1.0, 1.0, 0.75, 0.5, 0.25, 0.0]
        """
        if parts_done == 0:
            return 1.0
        optional = len(self.parts_us) - 1
        return 1.0 - (parts_done - 1) / optional if optional else 0.0

    def record(self) -> Record:
        record: Record = {
            "requested": self.number,
            "class": self.class_name,
            "submitted": self.submitted,
            "deadline": self.deadline,
            "parts": list(self.parts_us),
        }
        return {**record, "tables": list(self.tables)} if self.tables else record

    @classmethod
    def from_record(cls, record: Record) -> Self:
        return cls(
            record["requested"],
            record["class"],
            record["submitted"],
            record["deadline"],
            tuple(record["parts"]),
            tuple(record.get("tables", ())),
        )


class RequestPart(Job):
    """A job that does one part of a request. A track runs it without interruption."""

    __slots__ = ("part", "pending")

    task: ClassTask

    def __init__(self, pending: PendingRequest, number: int, start: int, track: int) -> None:
        # Not by super().__init__: a simulation makes most of its objects here.
        self.task = pending.task
        self.number = number
        self.release = pending.release
        self.deadline = pending.deadline
        self.start = start
        self.track = track
        self.pending = pending
        self.part = pending.done  # 0 is the mandatory one

    @property
    def request(self) -> Request:
        return self.pending.request

    @property
    def estimate_us(self) -> int:
        return self.pending.request.parts_us[self.part]

    def record(self) -> dict[str, Any]:
        return {**super().record(), "request": self.request.number, "part": self.part}

    def __repr__(self) -> str:
        return f"Part({self.task.name} #{self.number}: {self.part} of request {self.request.number})"


@dataclass(slots=True, eq=False)
class AnswerRequest(Instruction):
    """A request is over: send the result so far. Without a finished part it has no answer."""

    word = "answer"
    request: Request
    parts_done: int

    def record(self) -> Record:
        return {self.word: self.request.number, "parts": self.parts_done}


@dataclass(slots=True, eq=False)
class RejectRequest(Instruction):
    """A request is not admitted. The client may ask again after a while."""

    word = "reject"
    request: Request
    retry_after_us: int

    def record(self) -> Record:
        return {self.word: self.request.number, "retry_after": self.retry_after_us}
