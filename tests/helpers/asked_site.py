"""A warehouse that can be asked, without a warehouse behind it; and whoever asks it over real HTTP."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from freshline.service.address import ServiceAddress
from freshline.service.failures import ServiceFailure, no_answer, rejected, stopping
from freshline.service.questions import Question
from freshline.service.server import serving
from patience import PATIENCE_S

ROWS = [["a", 3], ["b", None]]
CLASSES = [{"class": "operators", "ate": 0.1, "admitted": 1.0, "quota": 2.0, "waiting": 0}]


class Asked:
    def __init__(self, site: "Site", question: Question) -> None:
        self.site, self.question = site, question
        self.reply: Future[None] = Future()
        self.dropped = threading.Event()

    def submit(self) -> None:
        sql = self.question.sql
        if sql == "bug":
            raise KeyError("a bug")
        if not sql.startswith("SELECT"):
            raise ServiceFailure("bad_sql", "this is no SELECT", "Write one")
        if sql == "SELECT too much":
            raise rejected(1_500_000)
        if sql == "SELECT late":
            raise stopping()
        if sql == "SELECT slowly":
            self.reply.set_exception(no_answer())
        elif sql == "SELECT with pains":
            self.site.may_go_on.wait(PATIENCE_S)
            with suppress(InvalidStateError):  # its client has gone
                self.reply.set_result(None)
        elif sql != "SELECT for ever":
            self.reply.set_result(None)

    def drop(self) -> None:
        self.dropped.set()
        self.reply.cancel()

    def row_count(self) -> int:
        return len(ROWS)

    def record(self) -> dict[str, Any]:
        return {
            "class": self.question.class_name,
            "columns": ["g", "n"],
            "rows": ROWS,
            "intervals": [[None, [2.0, 4.0]], [None, None]],
            "few": [[False, False], [False, True]],
            "share": float(self.question.share or 1),
            "complete": self.question.share is None,
            "parts": {"done": 2, "of": 8},
            "error": 0.86,
            "freshness": {"events": "2026-01-01T00:00:00Z", "empty": None},
            "seconds": 0.01,
        }

    def table(self) -> pa.Table:
        return pa.table({"g": ["a", "b"], "n": [3, None]})


class Site:
    """Answers what begins with SELECT; `SELECT for ever` waits until it is dropped, and to read `SELECT with
    pains` takes a thread until all may go on.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.may_go_on = threading.Event()

    def status(self) -> dict[str, Any]:
        return {"tables": []}

    def results(self, query: str) -> dict[str, Any] | None:
        return None

    def apply(self, text: str) -> dict[str, Any]:
        return {}

    def classes(self) -> list[dict[str, Any]]:
        return CLASSES

    def ask(self, question: Question) -> Asked:
        if question.class_name not in ("operators", "guests"):
            raise ServiceFailure("unknown_class", "there is no such class", "There are operators and guests")
        asked = Asked(self, question)
        self.asked.append(asked)
        return asked

    def wait_for(self, count: int) -> None:
        """Until so many have been asked."""
        give_up_at = time.monotonic() + PATIENCE_S
        while len(self.asked) < count:
            assert time.monotonic() < give_up_at, "nobody asked"
            time.sleep(0.01)


@contextmanager
def asked_service(folder: Path) -> Iterator[tuple[Site, Path, ServiceAddress]]:
    site, path = Site(), folder / "warehouse" / "_freshline" / "service.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    with serving(site, path) as address:
        yield site, path, address


def post(address: ServiceAddress, body: bytes, **headers: str) -> tuple[int, http.client.HTTPMessage, bytes]:
    """The answer to a question, its headers and its body."""
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE_S)
    try:
        given = {"Authorization": f"Bearer {address.token}"} | headers
        connection.request("POST", "/v1/query", body, given)
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def body_of(sql: str = "SELECT 1", **others: Any) -> bytes:
    return json.dumps({"sql": sql, "class": "operators", "deadline": "2s"} | others).encode()
