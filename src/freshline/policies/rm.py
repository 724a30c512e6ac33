"""Rate monotonic, global and non-preemptive."""

from freshline.kernel.task import Task
from freshline.policies.order import Order


class RateMonotonic(Order):
    """The table with the shorter period goes first (paper 004, section 5).

    Long periods can starve: there is no staleness bound for it.
    """

    def key(self, task: Task) -> int:
        return task.period_us
