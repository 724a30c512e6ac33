"""A shop that runs on Spark and can be asked: its orders are loaded while people ask."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from freshline.live.run.runner import Runner
from freshline.service.address import ServiceAddress
from freshline.service.client import ask
from live_project import START, LiveProject
from patience import PATIENCE_S, wait_until

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


class Shop(LiveProject):
    """A project, who runs it, and who asks."""

    def __init__(self, folder: Path, spark, pools: str = APART) -> None:  # type: ignore[no-untyped-def]
        super().__init__(folder, spark)
        self.rows: list[tuple[str, int]] = []
        (folder / "freshline.yml").write_text(PROJECT.replace("POOLS", pools), encoding="utf-8")

    def land(self, number: int, count: int = 4_000) -> None:
        rows = [(f"item{each * 7919 % ITEMS}", each % 101) for each in range(number, number + count)]
        at = [START + timedelta(seconds=10 * number + 10 * place / count) for place in range(count)]
        self.put(number, [(then, *row) for then, row in zip(at, rows, strict=True)])
        self.rows += rows

    @contextmanager
    def running(self) -> Iterator[Runner]:
        with super().running() as runner:
            wait_until(lambda: self.loaded() == len(self.rows))
            yield runner

    def loaded(self) -> int:
        return sum(table.loaded_rows for table in self.status().tables)

    @property
    def address(self) -> ServiceAddress:
        address = ServiceAddress.read(self.control.service)
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
