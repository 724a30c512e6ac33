"""Rate monotonic, global and non-preemptive."""

from typing import ClassVar, Protocol

from freshline.kernel.order import Entry, Order


class Periodic(Entry, Protocol):
    """Something that is done once in every period."""

    @property
    def period_us(self) -> int: ...


class RateMonotonic(Order[Periodic]):
    """The one with the shorter period goes first (paper 004, section 5).

    Long periods can starve: there is no staleness bound for it.
    """

    open: ClassVar[bool] = True

    def key(self, entry: Periodic) -> int:
        return entry.period_us
