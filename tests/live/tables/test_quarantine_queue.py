"""What cannot be put into quarantine is tried again, ever later, and left alone once it has changed."""

from pathlib import Path

import pytest

from freshline.base.duration import MINUTE, SECOND
from freshline.definitions.load import loads
from freshline.live.loop.failures import ATTEMPTS_MAX
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.live.tables.run_records import RunRecords
from freshline.planning.plan.make import make_plan
from freshline.storage.control.quarantine import Quarantine

PROJECT = """\
name: refused
pools: {updates: {tracks: 1}}
feeds: {orders: {path: orders, format: csv, schema: "ts timestamp", timestamp: ts, period: 1s}}
tables: {orders: {feed: orders, cost: {startup: 100ms}}}
"""
START = 1_000 * SECOND


class Refused:
    """A bad file, a quarantine that may be out of order, and a clock that stands until it is set."""

    def __init__(self, folder: Path) -> None:
        self.now = START
        self.keeper = RunRecords(loads(PROJECT), make_plan(loads(PROJECT)), "run", START, print)
        self.quarantine = Quarantine(folder / "quarantine")
        self.refusals = QuarantineQueue(
            self.quarantine, self.keeper.notes, lambda message: None, lambda: self.now
        )
        self.path = folder / "1.csv"
        self.path.write_text("bad")
        self._obstacle = folder / "quarantine"

    def break_down(self) -> None:
        self._obstacle.write_text("this should be a folder")

    def repair(self) -> None:
        self._obstacle.unlink()

    def put(self) -> None:
        self.refusals.put("orders", "1.csv", self.path, "it is bad", 1)

    @property
    def names(self) -> list[str]:
        return [entry.name for entry in self.quarantine.entries()]


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    return Refused(tmp_path)


def test_a_file_is_put_aside_at_once(refused: Refused) -> None:
    refused.put()
    assert refused.names == ["1.csv"]
    assert not refused.path.exists()
    assert not refused.refusals.are_fresh()


def test_what_cannot_be_put_aside_is_said_once_and_tried_when_it_is_time(refused: Refused) -> None:
    refused.break_down()
    refused.put()
    assert refused.refusals.are_fresh()
    for _ in range(ATTEMPTS_MAX):
        refused.now += MINUTE
        refused.refusals.try_again()
    assert not refused.refusals.are_fresh()
    assert len([note for note in refused.keeper.notes.lines if "cannot be put into quarantine" in note]) == 1
    refused.repair()
    refused.refusals.try_again()  # not before it is time
    assert refused.names == []
    refused.now += MINUTE
    refused.refusals.try_again()
    assert refused.names == ["1.csv"]
    assert not refused.path.exists()


def test_what_has_changed_meanwhile_is_left_alone(refused: Refused) -> None:
    refused.break_down()
    refused.put()
    refused.path.write_text("a correction")
    refused.repair()
    refused.now += MINUTE
    refused.refusals.try_again()
    assert refused.names == []
    assert refused.path.read_text() == "a correction"
    assert not refused.refusals.are_fresh()
