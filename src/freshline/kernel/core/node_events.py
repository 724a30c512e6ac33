"""Events of nodes, for kernels that are simulated together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from freshline.kernel.core.events import Event

if TYPE_CHECKING:
    from freshline.kernel.core.kernel import Kernel


@dataclass(slots=True, eq=False)
class NodeStopped(Event):
    """A node has crashed: its kernel is lost, with its running jobs."""

    word = "node_stopped"
    keys = (("node", word),)
    node: str

    def take(self, kernel: Kernel, now: int) -> None:
        raise AssertionError(f"a kernel of one node cannot know that {self.node} stopped")


@dataclass(slots=True, eq=False)
class NodeStarted(Event):
    """A node that had crashed starts again, from what it had committed."""

    word = "node_started"
    keys = (("node", word),)
    node: str

    def take(self, kernel: Kernel, now: int) -> None:
        raise AssertionError(f"a kernel of one node cannot know that {self.node} started")


EVENTS: Final[tuple[type[Event], ...]] = (NodeStopped, NodeStarted)
