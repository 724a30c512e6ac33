"""Sends a Poisson stream of requests to a running warehouse over HTTP, from a separate process."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from freshline.service.address import LOOPBACK, ServiceAddress

_MORE_S: Final = 20.0  # the client's timeout beyond the deadline


@dataclass(frozen=True, slots=True)
class ScheduledRequest:
    """A request, and when it is sent: seconds after the start."""

    at_s: float
    class_name: str
    sql: str
    share: float
    deadline_s: float


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The outcome of a request, as its client saw it."""

    at_s: float
    class_name: str
    status: int  # of HTTP; 0: no answer
    took_s: float
    deadline_s: float
    error: float  # te; 1 without an answer

    @property
    def is_admitted(self) -> bool:
        return self.status != 429

    @property
    def is_answered(self) -> bool:
        return self.status == 200


def poisson(
    phases: Sequence[tuple[float, float]],  # (how long, requests a second)
    shares: Sequence[tuple[str, float]],  # by class: of all requests
    queries: Sequence[tuple[str, float]],  # (SQL, share of the slices)
    deadline_s: float,
    seed: int,
) -> list[ScheduledRequest]:
    """The requests of all phases, one after another."""
    rng = np.random.default_rng(seed)
    names, weights = [name for name, _ in shares], [share for _, share in shares]
    due, begins = [], 0.0
    for seconds, rate in phases:
        at = begins
        while (at := at + rng.exponential(1 / rate)) < begins + seconds:
            sql, share = queries[int(rng.integers(len(queries)))]
            due.append(ScheduledRequest(at, names[rng.choice(len(names), p=weights)], sql, share, deadline_s))
        begins += seconds
    return due


def send_all(file: Path, due: Sequence[ScheduledRequest]) -> list[SentRequest]:
    """Sends requests when they are due, to the run with its address in that file."""
    address = ServiceAddress.read(file)
    assert address is not None, "no warehouse runs there"
    began, lock, said = time.monotonic(), threading.Lock(), []

    def send(each: ScheduledRequest) -> None:
        found = _sent(address, each)
        with lock:
            said.append(found)

    threads = []
    for each in due:
        time.sleep(max(0.0, began + each.at_s - time.monotonic()))
        threads.append(threading.Thread(target=send, args=(each,)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return sorted(said, key=lambda each: each.at_s)


def send_each(file: Path, due: Sequence[ScheduledRequest]) -> list[SentRequest]:
    """Sends each request after the answer to the one before, whenever they are due."""
    address = ServiceAddress.read(file)
    assert address is not None, "no warehouse runs there"
    return [_sent(address, each) for each in due]


def _sent(address: ServiceAddress, due: ScheduledRequest) -> SentRequest:
    at = time.monotonic()
    status, record = 0, {}
    body = {"sql": due.sql, "class": due.class_name, "deadline": f"{due.deadline_s}s", "share": due.share}
    connection = http.client.HTTPConnection(LOOPBACK, address.port, timeout=due.deadline_s + _MORE_S)
    try:
        headers = {"Authorization": f"Bearer {address.token}"}
        connection.request("POST", "/v1/query", json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        status, record = response.status, _record(text)
    except (OSError, http.client.HTTPException):
        pass
    finally:
        connection.close()
    took_s, error = time.monotonic() - at, record.get("error", 1.0) if status == 200 else 1.0
    return SentRequest(due.at_s, due.class_name, status, took_s, due.deadline_s, error)


def _record(text: bytes) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
