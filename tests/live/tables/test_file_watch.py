"""Files are found in time and told once, whatever happens to them and whatever other feeds deliver."""

import errno
import gc
import os
import queue
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from freshline.base.clock import Clock, clock
from freshline.base.duration import SECOND
from freshline.definitions.load import loads
from freshline.definitions.sections.discard import Discard
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.tables.asserted_bounds import AssertedBounds
from freshline.landing.digest import content_digest
from freshline.live.loop.messages import FileFound
from freshline.live.tables.discard_control import DiscardControl
from freshline.live.tables.file_to_load import files_to_load
from freshline.live.tables.file_watch import FileWatch
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.load_records import LoadRecords
from freshline.live.tables.quarantine_queue import QuarantineQueue
from freshline.live.tables.run_records import RunRecords
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.planning.plan.make import make_plan
from freshline.storage.control.history import History
from freshline.storage.control.quarantine import Quarantine
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.ledger import Ledger
from patience import PATIENCE_S

PROJECT = """\
name: watched
pools: {updates: {tracks: 2}}
feeds:
  flood: {path: flood, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 1s}
  trickle: {path: trickle, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 1s}
tables:
  a: {feed: flood, cost: {startup: 100ms}}
  b: {feed: trickle, cost: {startup: 100ms}}
  c: {feed: trickle, cost: {startup: 100ms}}
"""
READINGS = """\
name: watched
pools: {updates: {tracks: 1}}
feeds:
  readings: {path: readings, format: csv, schema: "ts timestamp, k long, v long", timestamp: ts, period: 1s}
tables:
  few: {feed: readings, cost: {startup: 100ms}}
  all: {feed: readings, cost: {startup: 100ms}}
"""
FILES = 40


class Watched:
    """Landing directories, and what is found in them."""

    def __init__(
        self, folder: Path, now: Clock = clock, warmth: WarmPlans | None = None, project: str = PROJECT
    ) -> None:
        warehouse = loads(project)
        discards = {
            name: replace(table, discard=Discard("k", "v"))
            for name, table in warehouse.tables.items()
            if name == "few"
        }
        self.discarding = DiscardControl(replace(warehouse, tables=warehouse.tables | discards))
        self.landing = {name: folder / name for name in warehouse.feeds}
        self.ledger, self.history = Ledger(folder / "ledger.sqlite"), History(folder / "history.sqlite")
        self.started = clock()
        self.keeper = RunRecords(warehouse, make_plan(warehouse), "run", self.started, print)
        self.found: queue.Queue[FileFound] = queue.Queue()
        feeds = LandingFeeds(warehouse, self.landing)
        books = LoadRecords(feeds, self.ledger, self.history, folder / "archive")
        notes = self.keeper.notes
        refusals = QuarantineQueue(Quarantine(folder / "quarantine"), notes, self.found.put)
        self.watch = FileWatch(
            feeds, books, refusals, notes, now=now, warmth=warmth, discarding=self.discarding
        )

    def put(self, feed: str, number: int) -> Path:
        self.landing[feed].mkdir(exist_ok=True)
        path = self.landing[feed] / f"{number}.csv"
        path.write_text(f"ts,n\n2024-05-06T12:00:{number:02},1\n")
        return path

    def next(self) -> tuple[str, str, set[str]]:
        landed = self.found.get(timeout=PATIENCE_S)
        return landed.feed, landed.file.name, set(landed.tables)

    def until(self, happened: Callable[[], bool]) -> None:
        give_up_at = time.monotonic() + PATIENCE_S
        while not happened():
            assert time.monotonic() < give_up_at, "it never happened"
            time.sleep(0.02)

    def until_quiet(self) -> None:
        looks = self.watch._looks
        self.until(lambda: self.watch._looks > looks + 5 and self.watch.is_quiet())

    def close(self) -> None:
        self.watch.stop()
        self.ledger.close()
        self.history.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with closing(Watched(tmp_path)) as watched:
        yield watched


def test_a_backlog_does_not_keep_the_files_of_other_feeds_from_being_found(watched: Watched) -> None:
    for number in range(FILES):
        watched.put("flood", number)
    watched.put("trickle", 0)
    watched.watch.start(watched.found.put)
    landed = [watched.found.get(timeout=PATIENCE_S) for _ in range(FILES + 1)]
    assert [(file.feed, file.file.name) for file in landed] == [
        ("trickle", "0.csv"),
        *(("flood", f"{number}.csv") for number in range(FILES)),  # all at once, by timestamp
    ]
    assert all(file.waited for file in landed)
    watched.put("trickle", 1)
    later = watched.found.get(timeout=PATIENCE_S)
    assert (later.feed, later.file.name, later.waited) == ("trickle", "1.csv", False)
    watched.until_quiet()
    assert watched.found.empty()


def test_a_file_that_goes_and_comes_back_before_it_is_loaded_is_told_once(watched: Watched) -> None:
    path = watched.put("trickle", 0)
    watched.watch.start(watched.found.put)
    landed = watched.found.get(timeout=PATIENCE_S)
    assert (landed.feed, landed.file.name, set(landed.tables)) == ("trickle", "0.csv", {"b", "c"})
    path.unlink()
    watched.until_quiet()
    watched.put("trickle", 0)
    watched.until_quiet()
    assert watched.found.empty()
    (facts,) = (file.facts for file in files_to_load([landed.file]))
    assert facts.consumed.mtime_ns == path.stat().st_mtime_ns
    for table in ("b", "c"):
        watched.watch.loaded(table, ["0.csv"])


def test_a_file_that_comes_back_is_told_to_the_table_that_had_put_it_aside(watched: Watched) -> None:
    path = watched.put("trickle", 0)
    watched.watch.start(watched.found.put)
    assert watched.next() == ("trickle", "0.csv", {"b", "c"})
    path.unlink()
    watched.watch.loaded("b", ["0.csv"])  # it could not be loaded, and is in quarantine now
    watched.until_quiet()
    watched.put("trickle", 0)
    assert watched.next() == ("trickle", "0.csv", {"b"})  # the other still has it before it
    watched.until_quiet()
    assert watched.found.empty()


def test_what_is_known_of_a_file_that_is_overwritten_reaches_all_who_have_yet_to_load_it(
    watched: Watched,
) -> None:
    path = watched.put("trickle", 0)
    watched.watch.start(watched.found.put)
    first = watched.found.get(timeout=PATIENCE_S)
    path.unlink()
    watched.watch.loaded("b", ["0.csv"])  # put aside
    watched.until_quiet()
    watched.put("trickle", 0)
    again = watched.found.get(timeout=PATIENCE_S)
    assert (set(first.tables), set(again.tables)) == ({"b", "c"}, {"b"})
    for records in (2, 3, 0):
        lines = [f"2024-05-06T12:00:{number:02},1\n" for number in range(records)]
        path.write_text("".join(["ts,n\n", *lines]))
        for landed in (first, again):
            watched.until(lambda landed=landed, records=records: records == records_of(landed))
            (facts,) = (file.facts for file in files_to_load([landed.file]))
            assert facts.consumed == ConsumedFile(
                "0.csv", path.stat().st_size, path.stat().st_mtime_ns, content_digest(path)
            )
    watched.until_quiet()
    assert watched.found.empty()


def records_of(landed: FileFound) -> int:
    (facts,) = (file.facts for file in files_to_load([landed.file]))
    return facts.records


def test_nothing_is_kept_of_files_that_nobody_waits_for(tmp_path: Path) -> None:
    with closing(Watched(tmp_path, project=READINGS)) as watched:
        keep_nothing(watched)


def keep_nothing(watched: Watched) -> None:
    watched.landing["readings"].mkdir()
    path = watched.landing["readings"] / "0.csv"
    kept = watched.discarding.last_values["few"]
    watched.watch.start(watched.found.put)
    path.write_text("ts,k,v\n2024-05-06T12:00:00,1,1\n")
    assert watched.next() == ("readings", "0.csv", {"few", "all"})
    for keys in (2, 3):
        path.write_text("ts,k,v\n" + "".join(f"2024-05-06T12:00:00,{key},1\n" for key in range(keys)))
        watched.until(lambda keys=keys: kept.waiting == keys)  # of what is there, and of nothing before
    path.unlink()
    watched.watch.loaded("few", ["0.csv"])  # put aside
    assert kept.waiting == 0
    watched.ledger.remember("few", ConsumedFile("0.csv", 0, 0, ""))
    path.write_text("ts,k,v\n2024-05-06T12:00:00,1,1\n")  # for the other, which has yet to load it
    watched.until_quiet()
    assert kept.waiting == 0


def test_what_cannot_be_looked_at_is_said_once(watched: Watched) -> None:
    watched.put("flood", 0)
    (watched.landing["flood"] / "sub").mkdir()
    Path(str(watched.landing["flood"] / "sub") + "/\udcff.csv").write_text("")
    watched.watch.start(watched.found.put)
    watched.until(lambda: len(watched.keeper.notes.lines) == 2)
    watched.until_quiet()
    notes = sorted(note.split(" ", 1)[1] for note in watched.keeper.notes.lines)
    assert notes == [
        "flood: its files cannot be read: sub: the name '\\udcff.csv' is not UTF-8",
        "trickle: its files cannot be read: its landing directory does not exist",
    ]


def test_a_file_that_cannot_be_looked_at_is_said_once_and_lands_when_it_can(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.put("flood", 0)
    broken = watched.put("trickle", 1)
    watched.put("trickle", 2)
    stat = os.stat

    def fails(path: str | Path, **options: bool) -> os.stat_result:
        if path == str(broken):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return stat(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", fails)
        watched.watch.start(watched.found.put)
        assert {watched.next()[:2], watched.next()[:2]} == {("flood", "0.csv"), ("trickle", "2.csv")}
        watched.until_quiet()
        (note,) = watched.keeper.notes.lines
        assert note.endswith(" trickle: its files cannot be read: 1.csv: Input/output error")
    assert watched.next()[:2] == ("trickle", "1.csv")
    assert watched.keeper.notes.quarantined == 0


def test_a_feed_that_delivers_only_empty_files_is_not_silent_but_no_bound_of_it_counts(
    watched: Watched,
) -> None:
    keeper = watched.keeper
    watched.landing["trickle"].mkdir()
    (watched.landing["trickle"] / "1.csv").write_text("ts,n\n")
    watched.watch.start(watched.found.put)
    watched.until(lambda: watched.ledger.find("c", "1.csv") is not None)
    # Since the run began a period has passed, and time to find a file; since the empty file came it has not.
    overdue = watched.started + 2 * SECOND + 1
    kernel = assemble(make_plan(loads(PROJECT)), overdue, dict.fromkeys("abc", watched.started))
    watched.found.get(timeout=PATIENCE_S).event(keeper.observation, overdue)
    keeper.observation.asserted = AssertedBounds(dict.fromkeys("abc", ()), from_start=True)
    states = {table.name: table.state for table in keeper.look(overdue, kernel).tables}
    assert states == {"a": "SILENT", "b": "HEALTHY", "c": "HEALTHY"}
    assert [note for note in keeper.notes.lines if "silent" in note] == ["+2s feed flood has gone silent"]
    assert not any(name in keeper.observation.asserted for name in keeper.observation.tables)
    # Neither comes: then it is silent, too.
    keeper.look(overdue + 60 * SECOND, kernel)
    assert any("feed trickle has gone silent" in note for note in keeper.notes.lines)


def test_links_in_a_landing_directory_are_said_once(watched: Watched) -> None:
    target = watched.put("trickle", 0)
    for number in (1, 2, 3):
        (watched.landing["trickle"] / f"{number}.csv").symlink_to(target)
    watched.watch.start(watched.found.put)
    assert watched.next() == ("trickle", "0.csv", {"b", "c"})
    watched.until_quiet()
    (watched.landing["trickle"] / "4.csv").symlink_to(target)
    watched.until_quiet()
    assert watched.found.empty()
    notes = watched.keeper.notes.lines
    assert len([note for note in notes if "symbolic link, and links are not followed" in note]) == 1


def test_a_file_dated_ahead_is_cut_to_the_watch_s_clock(tmp_path: Path) -> None:
    now = 1_600_000_000 * SECOND  # years before the records
    with closing(Watched(tmp_path, lambda: now)) as watched:
        watched.put("trickle", 0)
        watched.watch.start(watched.found.put)
        landed = watched.found.get(timeout=PATIENCE_S)
        assert (landed.arrival, landed.file.timestamp) == (now, now)
        assert any("0.csv has a timestamp after its arrival" in note for note in watched.keeper.notes.lines)


def test_the_files_of_a_feed_are_looked_for_once_all_of_its_tables_are_warm(tmp_path: Path) -> None:
    warmth = WarmPlans([("a", "b"), ("c",)])
    with closing(Watched(tmp_path, warmth=warmth)) as watched:
        watched.put("flood", 0)
        watched.put("trickle", 0)
        watched.watch.start(watched.found.put)
        watched.until(lambda: watched.watch._looks > 8)
        assert watched.found.empty()
        assert not watched.watch.is_quiet()  # a draining run has not seen everything yet
        warmth.warmed("b", clock())
        assert watched.next() == ("flood", "0.csv", {"a"})
        watched.until(lambda: watched.watch._looks > 16)
        assert watched.found.empty()
        assert not watched.watch.is_quiet()
        warmth.gave_up("c")  # nothing to wait for either
        landed = watched.found.get(timeout=PATIENCE_S)
        assert (landed.feed, set(landed.tables), landed.waited) == ("trickle", {"b", "c"}, True)
        watched.until_quiet()


def test_a_loaded_file_that_stays_takes_little_memory(tmp_path: Path) -> None:
    """Its name and 24 bytes: a directory may keep a million files, and a run goes on for months."""
    names = [f"events-{number}-of-the-year-2024.csv" for number in range(500)]
    with closing(Watched(tmp_path)) as watched:
        folder = watched.landing["flood"]
        folder.mkdir()
        for number, name in enumerate(names):
            (folder / name).write_text(f"ts,n\n2024-05-06T12:00:00,{number}\n")
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            watched.watch.start(watched.found.put)
            for _ in names:
                landed = watched.found.get(timeout=PATIENCE_S)
                (file,) = files_to_load([landed.file])
                watched.ledger.remember("a", file.facts.consumed)
                watched.watch.loaded("a", [file.name])
            del landed, file
            watched.until_quiet()
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (after - before) / len(names) < 350
