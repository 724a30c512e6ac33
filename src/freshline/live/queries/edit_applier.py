"""Applies an edited file to a running warehouse: only its queries may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final

from freshline.base.errors import NOWHERE, InputError
from freshline.definitions.differences import differences
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.load import loads
from freshline.definitions.sections.queries import QUERIES, Query
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.events import Event
from freshline.live.loop.messages import Message, MessageObserver
from freshline.spark.answering.window_reading import PreparedQuery

# Well below the timeout of a request (`service.guard`).
_DECISION_MAX_S: Final = 60.0
_NAMED_MAX: Final = 10

Prepare = Callable[[Warehouse], Mapping[str, PreparedQuery]]  # the queries as Spark has analysed them
Decide = Callable[[Mapping[str, PreparedQuery], int], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class QueriesEdited:
    """The message with the queries of an edited file. Its sender waits for the reply."""

    queries: Mapping[str, PreparedQuery]
    decide: Decide
    reply: Future[dict[str, Any]]

    def event(self, observer: MessageObserver, now: int) -> Event | None:
        """None: `decide` passes an event for each query that comes or goes to the kernel."""
        if self.reply.set_running_or_notify_cancel():  # otherwise its sender has left
            try:
                self.reply.set_result(self.decide(self.queries, now))
            except InputError as error:
                self.reply.set_exception(error)
        return None


class EditApplier:
    """Reads files in the threads of their senders; the driver's thread decides on their queries."""

    def __init__(
        self,
        warehouse: Warehouse,
        post: Callable[[Message], None],
        prepare: Prepare,
        decide: Decide,
        node: str | None = None,
    ) -> None:
        self._warehouse = warehouse
        self._node = node
        self._post = post
        self._prepare = prepare
        self._decide = decide
        self._lock = Lock()
        self._waiting: Future[dict[str, Any]] | None = None
        self._closed = False

    def apply(self, text: str, timeout_s: float = _DECISION_MAX_S) -> dict[str, Any]:
        """The outcome for each of the file's queries; InputError if it is wrong or has other differences."""
        edited = loads(text)
        check_runnable(edited)
        check_only_queries_differ(self._warehouse, edited)
        own = of_node(self._warehouse, edited, self._node)
        queries = self._prepare(own)
        reply: Future[dict[str, Any]] = Future()
        with self._lock:
            if self._closed:
                raise TimeoutError
            self._waiting = reply
        self._post(QueriesEdited(queries, self._decide, reply))
        try:
            return reply.result(timeout_s)
        except (TimeoutError, CancelledError):
            # The edit is either cancelled or was decided just now.
            if reply.cancel() or reply.cancelled():
                raise TimeoutError from None
            return reply.result()

    def close(self) -> None:
        """Rejects all edits from now on: the run ends."""
        with self._lock:
            self._closed = True
            if self._waiting is not None:
                self._waiting.cancel()


def of_node(running: Warehouse, edited: Warehouse, node: str | None) -> Warehouse:
    """The edited file with the queries of that node; InputError if those of other nodes differ."""
    if node is None:
        return edited
    before, after = (_elsewhere(warehouse, node) for warehouse in (running, edited))
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            pool = edited.pools[(after.get(name) or before[name]).pool]
            what = (
                f"the query {name} is in the pool {pool.name} on node {pool.node}: only those of node {node}"
            )
            raise InputError(
                f"{what} can change while the warehouse runs", "Undo that, or restart all with this file"
            )
    own = {name: query for name, query in edited.queries.items() if name not in after}
    return replace(edited, queries=own)


def _elsewhere(warehouse: Warehouse, node: str) -> dict[str, Query]:
    queries, pools = warehouse.queries, warehouse.pools
    return {
        name: replace(query, place=NOWHERE)
        for name, query in queries.items()
        if pools[query.pool].node != node
    }


def check_only_queries_differ(running: Warehouse, edited: Warehouse) -> None:
    """Raises InputError that names all other differences."""
    found = differences(running, edited, but=(QUERIES.name,))
    if found:
        named = ", ".join(f"`{path}`" for path in found[:_NAMED_MAX])
        more = f" and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
        verb = "differs" if len(found) == 1 else "differ"
        what = f"only `queries` can change while a warehouse runs, but {named}{more} {verb}"
        raise InputError(what, "Undo that, or stop the run and start it with this file")
