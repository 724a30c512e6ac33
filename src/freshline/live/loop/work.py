"""The interface of a kind of work in a run. `live.kinds_of_work` lists the kinds."""

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
    """One kind of work in a live run. A kind overrides the methods that it needs; others do nothing.

    A run makes one object of each kind when storage, Spark and kernel are open. It calls `warm_up`, `begin`
    and `start`, and `close` at the end. The driver's thread calls all methods unless a method says otherwise.
    """

    def __init__(self, opening: RunOpening) -> None:
        self.opening = opening

    # -- start and end -----------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Makes Spark compile code before the run, so that the first jobs are not slow."""

    def begin(self, run: RunContext) -> None:
        """Receives the objects that all kinds share, once the loop is made."""

    def start(self) -> None:
        """Starts the kind's own threads, just before the loop runs."""

    def let_go(self) -> None:
        """The run starts nothing more and waits for running jobs next."""

    def stop_serving(self) -> None:
        """Replies to clients that still wait, before the HTTP service ends."""

    def close(self) -> None:
        """Closes the kind at the end of the run."""

    # -- jobs ----------------------------------------------------------------------------------------

    def kinds(self) -> Kinds:
        """The worker and the judge of each type of job. The run calls it after `begin`."""
        return {}

    def carry_out(self, instruction: Instruction) -> bool:
        """Carries out an instruction other than starting a job; returns whether it is of this kind."""
        return False

    def look(self, now: int) -> None:
        """Passes events that have fallen due to the kernel, before each of its calls."""

    def tick(self, now: int) -> None:
        """The loop calls it twice a second."""

    # -- information -----------------------------------------------------------------------------

    def status(self, now: int, kernel: Kernel) -> Mapping[str, tuple[Any, ...]]:
        """The rows of this kind's sections, by the section's name."""
        return {}

    def said(self) -> Sequence[str]:
        """Sentences for the user at the start, without a full stop."""
        return ()

    def shortcomings(self) -> Sequence[str]:
        """Sentences about definitions that this run cannot keep."""
        return ()

    def kept(self) -> Mapping[str, KeptTable]:
        """The Delta tables for housekeeping, whose thread calls it too."""
        return {}

    def serves(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that answer methods of `service.running_warehouse.RunningWarehouse`, by method."""
        return {}

    # -- draining --------------------------------------------------------------------------------------

    def announce_drain(self) -> None:
        """Announces that the run ends when nothing is left to load."""

    def waits_in_vain(self, now: int) -> str | None:
        """The reason why something that a draining run waits for will never come; None if it may."""
        return None

    def expects_more(self, is_given_up: Callable[[str], bool]) -> bool:
        """Whether more may arrive that must be loaded before the run ends."""
        return False

    def is_at_work(self, is_given_up: Callable[[str], bool]) -> bool:
        """Whether jobs of this kind run or wait, besides those of tables, which the kernel knows."""
        return False

    def left_behind(self, is_given_up: Callable[[str], bool]) -> Sequence[str]:
        """Sentences about data that a draining run ends without, without a full stop."""
        return ()
