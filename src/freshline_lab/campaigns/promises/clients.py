"""Clients that ask a running warehouse again and again over HTTP, and how long each answer took."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from freshline.base.errors import InputError
from freshline.service.client import NoAnswer
from freshline.service.query import query


@dataclass(frozen=True, slots=True)
class Asked:
    """A request: when it was sent, how long the client waited, and what came."""

    class_name: str
    at: float  # by time.time
    took_s: float
    answer: str  # complete, estimated, the code of a refusal, or nobody


class Clients:
    """A thread for each class, which asks its question every few seconds."""

    def __init__(
        self, project: Path, questions: Mapping[str, str], every_s: float, deadline_s: float
    ) -> None:
        self.deadline_s = deadline_s
        self._project = project
        self._every_s = every_s
        self._stop = threading.Event()
        self._found: dict[str, list[Asked]] = {name: [] for name in questions}
        self._threads = [
            threading.Thread(target=self._run, args=question, name=f"asks-{question[0]}", daemon=True)
            for question in questions.items()
        ]

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    @property
    def asked(self) -> dict[str, list[Asked]]:
        """By class: all requests so far."""
        return self._found

    def counts(self, class_name: str) -> Counter[str]:
        return Counter(each.answer for each in self._found[class_name])

    def _run(self, class_name: str, sql: str) -> None:
        while not self._stop.wait(self._every_s):
            at, began = time.time(), time.monotonic()
            try:
                deadline = f"{self.deadline_s}s"
                told = query(sql, class_name=class_name, deadline=deadline, project=self._project)
                answer = "complete" if told["complete"] else "estimated"
            except NoAnswer as error:
                answer = error.code
            except InputError as error:
                answer = "nobody" if "no warehouse" in str(error) else f"refused: {error}"
            self._found[class_name].append(Asked(class_name, at, time.monotonic() - began, answer))
