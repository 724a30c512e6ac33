"""First in, first out."""

from typing import ClassVar

from freshline.kernel.core.order import Entry, Order


class Fifo(Order[Entry]):
    """The job released first goes first. What most tools do; no staleness bound is known for it."""

    open: ClassVar[bool] = True

    def key(self, entry: Entry) -> int:
        return entry.release
