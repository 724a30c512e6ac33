"""The HTTP service of a run. A run whose service cannot start continues without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from freshline.base.clock import clock
from freshline.live.loop.run_notes import RunNotes
from freshline.live.loop.work import Work
from freshline.live.run.live_warehouse import LiveWarehouse
from freshline.live.status.status import WarehouseStatus
from freshline.spark.errors import sentence
from freshline.storage.control.control_folder import ControlFolder


def serve(
    works: Sequence[Work],
    published: Callable[[], WarehouseStatus],
    control: ControlFolder,
    notes: RunNotes,
    stack: ExitStack,
) -> None:
    """Serves clients that may read the storage, if this run answers for the warehouse."""
    serves: dict[str, Callable[..., Any]] = {
        name: answer for work in works for name, answer in work.serves().items()
    }
    if "status" not in serves:
        return  # another node answers for the warehouse
    # FastAPI takes a second to import; Spark has started by now.
    from freshline.service.server import serving

    try:
        stack.enter_context(serving(LiveWarehouse(published, serves), control.service))
    except OSError as error:
        notes.note(clock(), f"this run has no HTTP service: {sentence(error)}")
    for work in works:
        stack.callback(work.stop_serving)
