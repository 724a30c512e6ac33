"""Rate monotonic: non-preemptive for tables, with or without preemption for queries."""

from typing import ClassVar

from freshline.kernel.core.order import E, Order


class RateMonotonic(Order[E]):
    """The one with the shorter deadline goes first; a table's is its period (paper 004, section 5).

    Long ones can starve: there is no staleness bound for it. Queries without preemption are paper 000's HPF,
    with it its RM.
    """

    open: ClassVar[bool] = True

    def key(self, entry: E) -> int:
        return entry.deadline - entry.release
