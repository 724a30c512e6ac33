"""What a run asks of each kind of work. `live.kinds_of_work` lists the kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from freshline.kernel.core.events import Instruction
from freshline.kernel.core.kernel import Kernel
from freshline.live.loop.kinds import Kinds

if TYPE_CHECKING:
    from freshline.live.tables.housekeeping import KeptTable
    from freshline.live.tables.run_context import RunContext, RunOpening


class Work:
    """One kind of work in a live run. A kind overrides what it needs; everything else does nothing.

    A run makes one of each kind when its storage, Spark and kernel are there. It calls `warm_up`, `begin` and
    `start`, and `close` at the end. The driver's thread calls everything here unless a method says otherwise.
    """

    def __init__(self, opening: RunOpening) -> None:
        self.opening = opening

    # -- start and end -----------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Before the run: Spark compiles now what would make the first jobs slow."""

    def begin(self, run: RunContext) -> None:
        """The loop is made: from here on the kind has what all kinds share."""

    def start(self) -> None:
        """The loop is about to run: a kind that has threads of its own starts them."""

    def let_go(self) -> None:
        """Nothing is begun any more; jobs that run are waited for next."""

    def stop_serving(self) -> None:
        """The HTTP service ends: clients that still wait get a reply."""

    def close(self) -> None:
        """The run has ended."""

    # -- jobs ----------------------------------------------------------------------------------------

    def kinds(self) -> Kinds:
        """By type of job, the worker that does it and the judge of its end. Asked after `begin`."""
        return {}

    def carry_out(self, instruction: Instruction) -> bool:
        """Does what the kernel says beside starting jobs. Whether the instruction is of this kind."""
        return False

    def look(self, now: int) -> None:
        """Before each call of the kernel: what the kernel has to hear at an instant of its own."""

    def tick(self, now: int) -> None:
        """Twice a second."""

    # -- what others ask -------------------------------------------------------------------------

    def status(self, now: int, kernel: Kernel) -> Mapping[str, tuple[Any, ...]]:
        """The rows of this kind's sections, by the section's name."""
        return {}

    def said(self) -> Sequence[str]:
        """What a user should know at the start, as sentences without a full stop."""
        return ()

    def shortcomings(self) -> Sequence[str]:
        """What of the definitions cannot be kept, as sentences."""
        return ()

    def kept(self) -> Mapping[str, KeptTable]:
        """The Delta tables that housekeeping looks after. Housekeeping's thread asks too."""
        return {}

    def serves(self) -> Mapping[str, Callable[..., Any]]:
        """By method of `service.running_warehouse.RunningWarehouse`, the function that answers it."""
        return {}

    # -- draining --------------------------------------------------------------------------------------

    def announce_drain(self) -> None:
        """The run is to end when nothing is left to load."""

    def waits_in_vain(self, now: int) -> str | None:
        """Why something that a draining run waits for will never come."""
        return None

    def expects_more(self, is_given_up: Callable[[str], bool]) -> bool:
        """Whether more may come that is to be loaded before the run ends."""
        return False

    def is_at_work(self, is_given_up: Callable[[str], bool]) -> bool:
        """Whether jobs of this kind run or wait, beside those of tables, which the kernel knows."""
        return False
