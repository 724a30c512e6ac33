"""A policy that Freshline does not have, to see what it takes to add one."""

from freshline.kernel.core.order import Order
from freshline.kernel.tables.task import TableTask


class LeastLaxity(Order[TableTask]):
    """The job that could wait for the shortest time goes first."""

    def key(self, entry: TableTask) -> int:
        return entry.deadline - entry.worst_case_us
