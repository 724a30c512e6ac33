"""A kind of work in simulated time: what its jobs cost, how they end, and what is seen of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
# What hears the instructions that a kind of work has beside those about jobs.
Listeners = Mapping[type[Instruction], Callable[[int, Any], None]]


@dataclass(frozen=True, slots=True)
class SimulationSetup:
    """What a simulated run is made of."""

    plan: Plan
    seed: int
    conditions: Conditions
    failures: JobFailures | None = None  # where jobs fail
    witness: Any = None  # is told of every update that ends well


class KindResult(Protocol):
    """What a run showed of one thing: a table, a query, a class …"""

    @property
    def holds(self) -> bool:
        """Whether it was as it is to be."""


class SectionResult:
    """A result that is shown in a section of its own, by commands that do not know its kind."""

    __slots__ = ()
    section: ClassVar[str]  # its key in JSON
    promise: ClassVar[str] = "targets"  # what does not hold where it does not

    @property
    def holds(self) -> bool:
        """Whether it was as it is to be."""
        return True

    def record(self) -> dict[str, Any]:
        """As JSON."""
        raise NotImplementedError

    def shown(self) -> dict[str, str]:
        """A row of a table, by column."""
        raise NotImplementedError


class SimulatedKind(Generic[J]):
    """What a simulation has to know of a kind of work. A kind writes what it has: the rest does nothing."""

    job: ClassVar[type[Job]]  # the type of its jobs
    listeners: Listeners = MappingProxyType({})

    @classmethod
    def made_for(cls, setup: SimulationSetup) -> Self | None:
        """The kind for a run of a plan; None where the plan has nothing of it."""
        raise NotImplementedError

    @classmethod
    def can_be_slow(cls, warehouse: Warehouse) -> Iterable[str]:
        """The names whose costs a run may multiply."""
        return ()

    def attach(self, driver: SimulatedDriver, end: int = NEVER) -> None:
        """That driver is told of what happens beside jobs, in a run up to `end`."""

    def begins(self, kernel: Kernel) -> None:
        """The kernel runs from now on."""

    def cost_us(self, job: J) -> int:
        """How long the job takes that starts now."""
        raise NotImplementedError

    def ended(self, now: int, job: J) -> Event:
        """The job ends now: looks at how all is before the kernel hears of it, and says what it hears."""
        raise NotImplementedError

    def part_ends_us(self, job: J, ran_us: int) -> int:
        """For how long it will have run when it can be put aside next, if it has run for so long."""
        return ran_us

    def paused(self, now: int, job: J) -> None:
        """The job is put aside."""

    def goes_on(self, now: int, job: J) -> None:
        """The job, which was put aside, goes on."""

    def crashed(self, now: int) -> None:
        """The kernel is gone, and all jobs that ran."""

    def found(self, kernel: Kernel) -> Mapping[str, int]:
        """How fresh the next runner finds what a lost kernel had stored, by name."""
        return {}

    def over(self, end: int, kernel: Kernel) -> None:
        """The run is over."""

    def results(self, kernel: Kernel, end: int) -> Sequence[KindResult]:
        """What the run showed of it."""
        return ()
