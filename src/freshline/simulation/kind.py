"""A kind of work in simulated time: the costs of its jobs, their ends, and its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, Self, TypeVar

from freshline.kernel.core.events import Event, Instruction
from freshline.kernel.core.job import Job
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.timers import NEVER

if TYPE_CHECKING:
    from freshline.definitions.warehouse import Warehouse
    from freshline.planning.plan.plan import Plan
    from freshline.simulation.conditions.conditions import Conditions
    from freshline.simulation.conditions.failures import JobFailures
    from freshline.simulation.driver import SimulatedDriver

J = TypeVar("J", bound=Job)
# Handlers of instructions that a kind of work has beside those about jobs.
Listeners = Mapping[type[Instruction], Callable[[int, Any], None]]


@dataclass(frozen=True, slots=True)
class SimulationSetup:
    """All that makes a simulated run."""

    plan: Plan
    seed: int
    conditions: Conditions
    failures: JobFailures | None = None  # if jobs fail
    witness: Any = None  # called for every successful update


class KindResult(Protocol):
    """The result of one thing in a run: a table, a query, a class …"""

    @property
    def holds(self) -> bool:
        """Whether it kept its targets."""


class SectionResult:
    """A result with its own section in the output, for commands that do not know its kind."""

    __slots__ = ()
    section: ClassVar[str]  # its key in JSON
    promise: ClassVar[str] = "targets"  # what is broken if it does not hold

    @property
    def holds(self) -> bool:
        return True

    def record(self) -> dict[str, Any]:
        raise NotImplementedError

    def shown(self) -> dict[str, str]:
        """A row of a table, by column."""
        raise NotImplementedError


class SimulatedKind(Generic[J]):
    """What a simulation needs of a kind of work. A kind overrides what it has: the rest does nothing."""

    job: ClassVar[type[Job]]  # the type of its jobs
    listeners: Listeners = MappingProxyType({})

    @classmethod
    def made_for(cls, setup: SimulationSetup) -> Self | None:
        """The kind for a run of a plan; None if the plan has no such work."""
        raise NotImplementedError

    @classmethod
    def can_be_slow(cls, warehouse: Warehouse) -> Iterable[str]:
        """The names with costs that a run may multiply."""
        return ()

    def attach(self, driver: SimulatedDriver, end: int = NEVER) -> None:
        """Schedules events beside jobs with that driver, in a run up to `end`."""

    def begins(self, kernel: Kernel) -> None:
        """The kernel runs from now on."""

    def cost_us(self, job: J) -> int:
        """How long the starting job takes."""
        raise NotImplementedError

    def ended(self, now: int, job: J) -> Event:
        """The job ends now: records the state before the kernel takes the end, and returns its event."""
        raise NotImplementedError

    def part_ends_us(self, job: J, ran_us: int) -> int:
        """How long it will have run when it can next be paused, if it has run for `ran_us`."""
        return ran_us

    def paused(self, now: int, job: J) -> None:
        """The job is paused."""

    def goes_on(self, now: int, job: J) -> None:
        """The paused job goes on."""

    def crashed(self, now: int) -> None:
        """The kernel and all its running jobs are lost."""

    def node_crashed(self, now: int, tasks: Collection[str]) -> None:
        """The kernel of a node is lost, with these tasks and their running jobs."""

    def node_began(self, kernel: Kernel, tasks: Collection[str]) -> None:
        """The node with these tasks runs again; the kernels of all nodes are `kernel`."""

    def found(self, kernel: Kernel) -> Mapping[str, int]:
        """By name: how fresh the next runner finds what a lost kernel had stored."""
        return {}

    def over(self, end: int, kernel: Kernel) -> None:
        """The run is over."""

    def results(self, kernel: Kernel, end: int) -> Sequence[KindResult]:
        return ()
