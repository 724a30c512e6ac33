"""A policy that Freshline does not have, to see what it takes to add one."""

from freshline.kernel.task import Task
from freshline.policies.order import Order


class LeastLaxity(Order):
    """The job that could wait for the shortest time goes first."""

    def key(self, task: Task) -> int:
        return task.deadline - task.worst_case_us
