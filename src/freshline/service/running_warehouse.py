"""The interface of a running warehouse that the service uses."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from freshline.service.questions import Question

if TYPE_CHECKING:
    import pyarrow as pa


class ServiceRequest(Protocol):
    """A question on its way to an answer. The client may disconnect at any step."""

    reply: Future[None]  # done when the answer exists, or with a `ServiceFailure`

    def submit(self) -> None:
        """Parses the SQL and passes it to the run, which replies. Raises `ServiceFailure` if invalid."""

    def drop(self) -> None:
        """Cancels the question, because the client no longer waits. Any thread may call it at any time."""

    def row_count(self) -> int:
        """The number of rows of the answer."""

    def record(self) -> dict[str, Any]:
        """The answer as JSON."""

    def table(self) -> pa.Table:
        """The rows of the answer."""


class RunningWarehouse(Protocol):
    """A running warehouse. The threads of the service call it, not its own."""

    def status(self) -> dict[str, Any]:
        """The status of the run."""

    def results(self, query: str) -> dict[str, Any] | None:
        """The newest answer of a query; None if there is none."""

    def apply(self, text: str) -> dict[str, Any]:
        """Applies the queries of an edited file, and returns what became of each.

        Raises InputError if the file is invalid, and TimeoutError if the run does not decide in time.
        """

    def classes(self) -> list[dict[str, Any]]:
        """The state of its service classes, the most important first."""

    def ask(self, question: Question) -> ServiceRequest:
        """Creates a question to a class, at once. Raises `ServiceFailure` if the class does not exist."""
