"""First in, first out."""

from typing import ClassVar

from freshline.kernel.core.order import Order, ReadyJob


class Fifo(Order[ReadyJob]):
    """The job released first goes first, as in most tools. It has no staleness bound."""

    open: ClassVar[bool] = True

    def key(self, entry: ReadyJob) -> int:
        return entry.release
