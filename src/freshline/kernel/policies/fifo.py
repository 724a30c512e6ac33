"""First in, first out."""

from typing import ClassVar

from freshline.kernel.core.order import Order, ReadyJob


class Fifo(Order[ReadyJob]):
    """The job released first goes first. What most tools do; no staleness bound is known for it."""

    open: ClassVar[bool] = True

    def key(self, entry: ReadyJob) -> int:
        return entry.release
