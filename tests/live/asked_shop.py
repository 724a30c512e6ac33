"""A shop that runs on Spark and can be asked: its orders are loaded while people ask."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from freshline.assembly.replay import kernel_of, replay
from freshline.definitions.load import load
from freshline.live.runner import Runner
from freshline.service.address import Address
from freshline.service.client import ask
from freshline.storage.layout import Layout
from patience import PATIENCE_S, PATIENCE_US

START = datetime(2026, 1, 1, tzinfo=UTC)
APART = "{updates: {tracks: 1}, asked: {tracks: 2, policy: rds-quota}}"
OPEN = "{updates: {tracks: 1}, asked: {tracks: 2, policy: admit-all}}"
TOGETHER = "{updates: {tracks: 1, policy: rds-edf}}"
PROJECT = """\
name: shop
pools: POOLS
feeds:
  orders: {path: landing, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 10s}
tables:
  orders: {feed: orders, pool: updates, cost: {startup: 2s}, slices: {by: item}}
classes:
  operators: {error: 0.3}
  guests: {error: 0.5}
"""  # noqa: E501
ITEMS = 500


class Shop:
    """A project, who runs it, and who asks."""

    def __init__(self, folder: Path, spark, pools: str = APART) -> None:  # type: ignore[no-untyped-def]
        self.folder, self.spark = folder, spark
        self.control = Layout(folder / "warehouse").control()
        self.rows: list[tuple[str, int]] = []
        (folder / "landing").mkdir(parents=True)
        (folder / "freshline.yml").write_text(PROJECT.replace("POOLS", pools), encoding="utf-8")

    def land(self, number: int, count: int = 4_000) -> None:
        rows = [(f"item{each * 7919 % ITEMS}", each % 101) for each in range(number, number + count)]
        lines = [
            f"{(START + timedelta(seconds=10 * number + 10 * at / count)).isoformat()},{item},{price}"
            for at, (item, price) in enumerate(rows)
        ]
        draft = self.folder / "landing" / f".{number}.csv"
        draft.write_text("\n".join(["ts,item,price", *lines, ""]), encoding="utf-8")
        draft.rename(draft.with_name(f"{number}.csv"))
        self.rows += rows

    @contextmanager
    def running(self) -> Iterator[Runner]:
        storage = self.folder / "warehouse"
        with Runner(load(self.folder / "freshline.yml"), self.folder, storage, session=self.spark) as runner:
            thread = threading.Thread(target=runner.run, args=(PATIENCE_US,))
            thread.start()
            try:
                self.wait_for(lambda: self.loaded() == len(self.rows))
                yield runner
            finally:
                runner.stop("seen")
                thread.join(PATIENCE_S)
        assert not thread.is_alive()

    def loaded(self) -> int:
        return sum(table["rows"] for table in self._summary())

    def _summary(self) -> list[dict[str, Any]]:
        from freshline.live.status import WarehouseStatus

        return [{"rows": table.loaded_rows} for table in WarehouseStatus.read(self.control.status).tables]

    @property
    def address(self) -> Address:
        address = Address.read(self.control.service)
        assert address is not None, "nobody runs"
        return address

    def ask(
        self, sql: str, class_name: str = "operators", deadline: str = "60s", **others: Any
    ) -> tuple[int, Any]:
        """The status and the answer."""
        body = {"sql": sql, "class": class_name, "deadline": deadline} | others
        return self.send(json.dumps(body).encode())

    def send(self, body: bytes, **headers: str) -> tuple[int, Any]:
        status, text = self.post(body, **headers)
        return status, json.loads(text)

    def post(self, body: bytes, **headers: str) -> tuple[int, bytes]:
        address = self.address
        connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE_S)
        try:
            given = {"Authorization": f"Bearer {address.token}"} | headers
            connection.request("POST", "/v1/query", body, given)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def classes(self) -> dict[str, dict[str, Any]]:
        return {each["class"]: each for each in ask(self.control.service, "GET", "/v1/classes")["classes"]}

    def replayed(self) -> tuple[int, object]:
        (log,) = self.control.logs.glob("*.jsonl")
        header, *calls = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        return replay(kernel_of(header), calls, header)

    @staticmethod
    def wait_for(condition: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < give_up_at, "it never came"
            time.sleep(0.1)
