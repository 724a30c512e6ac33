"""Rate monotonic: non-preemptive for tables, with or without preemption for queries."""

from typing import ClassVar

from freshline.kernel.core.order import E, Order


class RateMonotonic(Order[E]):
    """The shorter relative deadline goes first; a table's is its period (paper 004, section 5).

    Tasks with long deadlines can starve, so there is no staleness bound. Queries without preemption are paper
    000's HPF, with preemption its RM.
    """

    open: ClassVar[bool] = True

    def key(self, entry: E) -> int:
        return entry.deadline - entry.release
