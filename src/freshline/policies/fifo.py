"""First in, first out."""

from freshline.kernel.task import Task
from freshline.policies.order import Order


class Fifo(Order):
    """The job released first goes first. What most tools do; no staleness bound is known for it."""

    def key(self, task: Task) -> int:
        return task.release
