"""Which tables' plans Spark is warm for: only then are their files looked for, and do their bounds count."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from freshline.live.status.status import Progress

_Plan = tuple[str, ...]  # the tables whose updates are alike


class WarmPlans:
    """The plans of a run, in the order in which they are warmed up. Any thread may ask.

    A plan is warm once made-up rows have been through it, or an update of one of its tables. Where made-up
    rows fail, its tables have to do without: their files are looked for, and the first update warms them. A
    table of no plan is warm from the start: nobody warms anything up.
    """

    def __init__(self, plans: Sequence[_Plan] = ()) -> None:
        self._plans = list(plans)
        self._of = {table: plan for plan in plans for table in plan}
        self._lock = Lock()
        self._since: dict[_Plan, int] = {}
        self._done: set[_Plan] = set()  # warm, or no use to try
        self._taken: set[_Plan] = set()

    def take(self) -> _Plan | None:
        """The next plan to warm up, for one who does so; None: there is none left."""
        with self._lock:
            for plan in self._plans:
                if plan not in self._taken and plan not in self._done:
                    self._taken.add(plan)
                    return plan
            return None

    def warmed(self, table: str, at: int) -> None:
        """The table's plan has been run."""
        with self._lock:
            plan = self._of.get(table)
            if plan is not None:
                self._since.setdefault(plan, at)
                self._done.add(plan)

    def gave_up(self, table: str) -> None:
        """Made-up rows do not go through the table's plan."""
        with self._lock:
            self._done.add(self._of[table])

    def was_warm(self, table: str, at: int) -> bool:
        with self._lock:
            plan = self._of.get(table)
            return plan is None or (plan in self._since and self._since[plan] <= at)

    def is_awaited(self, table: str) -> bool:
        """Whether the table has yet to wait for its plan."""
        with self._lock:
            plan = self._of.get(table)
            return plan is not None and plan not in self._done

    def progress(self) -> Progress | None:
        """None once all is done."""
        with self._lock:
            done, of = len(self._done), len(self._plans)
        return None if done == of else Progress("warming up plans", done, of)
