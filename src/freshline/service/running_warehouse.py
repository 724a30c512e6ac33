"""A running warehouse, as far as the service asks it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from freshline.service.questions import Question

if TYPE_CHECKING:
    import pyarrow as pa


class ServiceAnswer(Protocol):
    """An answer that is there, and still has to be written out."""

    def row_count(self) -> int:
        """How many rows it has."""

    def record(self) -> dict[str, Any]:
        """As JSON has it."""

    def table(self) -> pa.Table:
        """Its rows."""


class Submission(Protocol):
    """A question on its way. Whoever asked it may have gone by any step of that."""

    reply: Future[ServiceAnswer]  # or a `Failure`

    def submit(self) -> None:
        """Reads the SQL and hands it to the run, which replies. `Failure` where it cannot be asked."""

    def drop(self) -> None:
        """Nobody waits for the answer any more. Any thread, at any time."""


class RunningWarehouse(Protocol):
    """A running warehouse. It is asked by threads that are not its own."""

    def status(self) -> dict[str, Any]:
        """How it is."""

    def results(self, query: str) -> dict[str, Any] | None:
        """A query's newest; None where there are none."""

    def apply(self, text: str) -> dict[str, Any]:
        """What becomes of the queries of an edited file.

        InputError where it is wrong; TimeoutError where nobody decides.
        """

    def classes(self) -> list[dict[str, Any]]:
        """How its service classes are, the most important first."""

    def ask(self, question: Question) -> Submission:
        """A question to one of its classes; it takes no time. `Failure` where there is no such class."""
