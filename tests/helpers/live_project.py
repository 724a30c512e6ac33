"""A project that runs on Spark in this process, in a thread of its own."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from freshline.definitions.load import load
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.live.status.status import WarehouseStatus
from freshline.storage.control.layout import StorageLayout
from patience import PATIENCE_S, PATIENCE_US

START = datetime(2026, 1, 1, tzinfo=UTC)


@contextmanager
def in_a_thread(runner: Runner) -> Iterator[None]:
    """It runs until the block ends."""
    thread = threading.Thread(target=runner.run, args=(PATIENCE_US,))
    thread.start()
    try:
        yield
    finally:
        runner.stop("seen")
        thread.join(PATIENCE_S)
    assert not thread.is_alive()


class LiveProject:
    """A folder with definitions and files that land, and who runs it."""

    def __init__(self, folder: Path, spark) -> None:  # type: ignore[no-untyped-def]
        self.folder, self.spark = folder, spark
        self.layout = StorageLayout(folder / "warehouse")
        self.control = self.layout.control()
        (folder / "landing").mkdir(parents=True)

    def put(self, number: int, rows: Sequence[tuple[datetime, str, int]]) -> None:
        """A file of orders, all at once."""
        lines = [f"{at.isoformat()},{item},{price}" for at, item, price in rows]
        draft = self.folder / "landing" / f".{number}.csv"
        draft.write_text("\n".join(["ts,item,price", *lines, ""]), encoding="utf-8")
        draft.rename(draft.with_name(f"{number}.csv"))

    @contextmanager
    def running(self) -> Iterator[Runner]:
        storage = self.folder / "warehouse"
        with (
            Runner(
                load(self.folder / "freshline.yml"), self.folder, storage, RunOptions(session=self.spark)
            ) as runner,
            in_a_thread(runner),
        ):
            yield runner

    def status(self) -> WarehouseStatus:
        return WarehouseStatus.read(self.control.status)

    def replayed(self) -> tuple[int, object]:
        (log,) = self.control.logs.glob("*.jsonl")
        header, *calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        return replay(kernel_of(header), calls, header)
