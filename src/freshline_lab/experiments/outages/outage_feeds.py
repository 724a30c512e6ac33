"""Paper 001's fourteen feeds at a hundredth of its time, cheap to write."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from freshline.base.clock import clock
from freshline.base.duration import SECOND
from freshline.base.instants import utc
from freshline.testing.network import FeedSpec, Generator

DOWN: Final = (50.0, 100.0)
SHORT, LONG = 3, 9  # periods in seconds
FEEDS_OF_A_KIND: Final = 7
RATES: Final = (FEEDS_OF_A_KIND / SHORT, FEEDS_OF_A_KIND / LONG)  # files a second

Rows = tuple[int, int]  # of a short file and of a long one


def specs(rows: Rows, down: bool = True) -> list[FeedSpec]:
    """t1 to t7 and t8 to t14; the first four have the outage."""
    feeds = []
    for number in range(1, 2 * FEEDS_OF_A_KIND + 1):
        period, count = (SHORT, rows[0]) if number <= FEEDS_OF_A_KIND else (LONG, rows[1])
        outages = (DOWN,) if down and number <= 4 else ()
        feeds.append(FeedSpec(f"t{number}", "csv", period, count, kind="records", outages=outages))
    return feeds


def is_short(table: str) -> bool:
    return int(table.removeprefix("t")) <= FEEDS_OF_A_KIND


class CopiedFeeds(Generator):
    """Feeds whose files of a kind differ only in their timestamps.

    Generating every file would take a tenth of a core from the tracks; changing its seconds takes little.
    """

    def __init__(self, feeds: list[FeedSpec], folder: Path, start_us: int) -> None:
        super().__init__(feeds, folder, 0, start_us)
        self._models: dict[int, list[tuple[int, bytes, bytes]]] = {}  # by period
        for spec in feeds:
            if spec.period_us not in self._models:
                self._models[spec.period_us] = list(_by_second(spec, start_us))

    def _write(self, feed: str, number: int) -> Path:
        path, due_us = self.path(feed, number), self.due_us(feed, number)
        draft = path.with_name(f".{path.name}")
        with draft.open("wb") as file:
            for before_us, second, lines in self._models[self._specs[feed].period_us]:
                file.write(lines.replace(second, _second(due_us - before_us)))
        return draft.replace(path)


def _by_second(spec: FeedSpec, start_us: int) -> Iterator[tuple[int, bytes, bytes]]:
    """A file's text, cut where its seconds change: the time before its end, the second, the lines."""
    with tempfile.TemporaryDirectory() as folder:
        (path, *_) = Generator([spec], Path(folder), 0, start_us).due(start_us + spec.period_us)
        text = path.read_bytes()
    end_us = start_us + spec.period_us
    assert end_us % SECOND == 0, "its records would have other seconds than those of a later file"
    for before_us in range(spec.period_us, 0, -SECOND):
        cut = text.index(_second(end_us - before_us + SECOND))
        cut = text.rindex(b"\n", 0, cut) + 1
        yield before_us, _second(end_us - before_us), text[:cut]
        text = text[cut:]
    yield 0, _second(end_us), text


def _second(instant_us: int) -> bytes:
    return f"{utc(instant_us):%Y-%m-%dT%H:%M:%S}".encode()


def whole_period() -> int:
    """A start at a multiple of both periods, so that all feeds begin together, as in the paper."""
    period_us = LONG * SECOND
    return (clock() // period_us + 1) * period_us


class generating:  # noqa: N801  (reads as a statement: with generating(...))
    """Writes files when they are due, from a thread, until the block ends."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._stop = threading.Event()
        self._thread = threading.Thread(target=generator.run, args=(self._stop,), daemon=True)

    def __enter__(self) -> Generator:
        self._thread.start()
        return self._generator

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
