"""A running warehouse, as far as the service asks it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from freshline.service.questions import Question

if TYPE_CHECKING:
    import pyarrow as pa


class ServiceRequest(Protocol):
    """A question on its way to its answer. Its client may have gone by any step of that."""

    reply: Future[None]  # done once there is an answer; or with a `ServiceFailure`

    def submit(self) -> None:
        """Reads the SQL and hands it to the run, which replies. `ServiceFailure` where it cannot be asked."""

    def drop(self) -> None:
        """The client waits no more. Any thread, at any time."""

    def row_count(self) -> int:
        """How many rows the answer has."""

    def record(self) -> dict[str, Any]:
        """The answer as JSON has it."""

    def table(self) -> pa.Table:
        """The answer's rows."""


class RunningWarehouse(Protocol):
    """A running warehouse. It is asked by threads that are not its own."""

    def status(self) -> dict[str, Any]:
        """How it is."""

    def results(self, query: str) -> dict[str, Any] | None:
        """A query's newest; None where there are none."""

    def apply(self, text: str) -> dict[str, Any]:
        """What becomes of the queries of an edited file.

        InputError where it is wrong; TimeoutError where the run does not decide.
        """

    def classes(self) -> list[dict[str, Any]]:
        """How its service classes are, the most important first."""

    def ask(self, question: Question) -> ServiceRequest:
        """A question to one of its classes, at once. `ServiceFailure` where there is no such class."""
