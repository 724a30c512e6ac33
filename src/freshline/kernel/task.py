"""A table as the kernel sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from freshline.kernel.intake import Intake
    from freshline.kernel.job import Job
    from freshline.kernel.pool import Pool
    from freshline.kernel.release import Release

IDLE: Final = 0  # no job released
WAITING: Final = 1  # the next job's release is known and lies ahead
READY: Final = 2  # released, not started
RUNNING: Final = 3
BACKED_OFF: Final = 4  # the job failed and is tried again later


class Task:
    """The updating of one table: its freshness and its one current or coming job.

    A table's jobs run one after the other, so one release and one deadline are all there is to know; what
    has been released beyond them is the release rule's to count.
    """

    __slots__ = (
        "deadline",
        "dependents",
        "empty",
        "freshness",
        "index",
        "intake",
        "job",
        "jobs_started",
        "name",
        "period_now_us",
        "period_us",
        "pool",
        "release",
        "rule",
        "startup_us",
        "state",
        "worst_case_us",
    )

    pool: Pool
    rule: Release

    def __init__(
        self,
        index: int,
        name: str,
        period_us: int,
        worst_case_us: int,
        intake: Intake,
        startup_us: int = 0,
    ) -> None:
        self.index = index  # its place in the definition: ties go by it
        self.name = name
        self.period_us = period_us
        self.period_now_us = period_us  # p(T, t) of paper 001: shorter while the table recovers
        self.worst_case_us = worst_case_us
        self.startup_us = startup_us  # the part of it that several updates in one job have in common
        self.intake = intake
        self.dependents: list[Task] = []  # those whose release follows this table's freshness
        self.freshness = 0
        # Nothing was ever loaded and time did not start at 0: the first update takes all there is.
        self.empty = False
        self.state = IDLE
        self.release = 0
        self.deadline = 0
        self.job: Job | None = None
        self.jobs_started = 0

    def worst_case_of(self, updates: int) -> int:
        """What a job costs at most that does so many updates at once."""
        return updates * self.worst_case_us - (updates - 1) * self.startup_us

    def __repr__(self) -> str:
        return f"Task({self.name})"
