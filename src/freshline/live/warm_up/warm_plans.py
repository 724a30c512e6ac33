"""The plans that Spark is warm for: only then are their tables' files searched for, and bounds count."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from freshline.live.status.status import Progress

_Plan = tuple[str, ...]  # tables whose updates have the same plan


class WarmPlans:
    """The plans of a run, in the order of their warm-up. Any thread may use it.

    A plan is warm once it has run with made-up rows, or in an update of one of its tables. If made-up rows
    fail, the search for files begins without a warm-up, and the first update warms the plan. A table without
    a plan is warm from the start.
    """

    def __init__(self, plans: Sequence[_Plan] = ()) -> None:
        self._plans = list(plans)
        self._of = {table: plan for plan in plans for table in plan}
        self._lock = Lock()
        self._since: dict[_Plan, int] = {}
        self._done: set[_Plan] = set()  # warm, or given up
        self._taken: set[_Plan] = set()

    def take(self) -> _Plan | None:
        """Takes the next plan to warm up; None if none is left."""
        with self._lock:
            for plan in self._plans:
                if plan not in self._taken and plan not in self._done:
                    self._taken.add(plan)
                    return plan
            return None

    def warmed(self, table: str, at: int) -> None:
        """Records that the table's plan has run."""
        with self._lock:
            plan = self._of.get(table)
            if plan is not None:
                self._since.setdefault(plan, at)
                self._done.add(plan)

    def gave_up(self, table: str) -> None:
        """Records that made-up rows fail in the table's plan."""
        with self._lock:
            self._done.add(self._of[table])

    def was_warm(self, table: str, at: int) -> bool:
        with self._lock:
            plan = self._of.get(table)
            return plan is None or (plan in self._since and self._since[plan] <= at)

    def is_awaited(self, table: str) -> bool:
        """Whether the table still waits for its plan."""
        with self._lock:
            plan = self._of.get(table)
            return plan is not None and plan not in self._done

    def progress(self) -> Progress | None:
        """The progress of the warm-up; None at its end."""
        with self._lock:
            done, of = len(self._done), len(self._plans)
        return None if done == of else Progress("warming up plans", done, of)
