"""The lease's heartbeat, from the start on: Spark alone takes longer to start than a lease lives."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from uuid import uuid4

from freshline.storage.control.control_folder import check_no_other
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.lease import Identity, Lease, LeaseLost

_EVERY_S = 2.0


class Heartbeat:
    """A thread that renews a lease every two seconds and reports its loss."""

    def __init__(self, lease: Lease, lost: Callable[[str], None]) -> None:
        self._lease = lease
        self._lost = lost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)

    def _beat(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self._lease.renew()
            except LeaseLost as error:
                self._lost(str(error))
                return
            except OSError:
                continue  # a failure of the storage; the next beat finds out whether the lease is lost


@contextmanager
def sole_writer(layout: StorageLayout, nodes: Collection[str], doing: str) -> Iterator[None]:
    """Holds the leases of all nodes within this context, so that no run uses the storage."""
    identity = Identity.mine(f"{doing}-{uuid4().hex[:6]}")
    with ExitStack() as stack:
        for control in layout.controls(nodes):
            layout.prepare(control)
            lease = Lease.acquire(control.lease, identity)
            stack.callback(lease.release)
            # If the lease is lost all the same, a commit of its new holder makes ours fail.
            heartbeat = Heartbeat(lease, lambda reason: None)
            heartbeat.start()
            stack.callback(heartbeat.stop)
        check_no_other(layout.other_controls(nodes), identity)
        yield
