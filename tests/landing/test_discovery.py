"""Which data files a feed delivers, each told once."""

import os
import resource
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from freshline.base.duration import MINUTE, SECOND
from freshline.definitions.sections.feeds import Feed, Landing
from freshline.landing.digest import content_digest
from freshline.landing.discovery import (
    DiscoveredFiles,
    Discovery,
    FoundFile,
    NameClash,
    RejectedFile,
    RepeatedFile,
)
from freshline.landing.parquet_process import ParquetProcess
from freshline.landing.parquet_records import parquet_records
from freshline.landing.scanner import SeenFile
from freshline.sql.columns import parse_columns

NOW = 1_714_996_800_000_000  # 2024-05-06 12:00 UTC, in µs
LANDING = Landing(path="in", format="csv", schema="ts timestamp, n long", timestamp="ts")
FEED = Feed("packets", "files", MINUTE, landing=LANDING)
NOTHING = DiscoveredFiles()
LOADED_BEFORE = "a file of this name and of other content was loaded before"


class Project:
    """A landing directory, what was loaded from it, and a feed's discovery."""

    def __init__(
        self, root: Path, feed: Feed = FEED, full_every: int = 1, process: ParquetProcess | None = None
    ) -> None:
        self.process = process
        self.root = root
        self.loaded: dict[str, FoundFile] = {}
        self.now = NOW
        self.feed = feed
        self.full_every = full_every
        self.restart()

    def restart(self) -> None:
        self.discovery = Discovery(
            self.feed, self.root, self.loaded.get, full_every=self.full_every, process=self.process
        )

    def put(self, name: str, *timestamps: str, text: str | None = None) -> Path:
        """A file appears at once, under its name."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        hidden = path.with_name(f".{path.name}")
        rows = "".join(f"{each},1\n" for each in timestamps)
        hidden.write_text(f"ts,n\n{rows}" if text is None else text)
        os.replace(hidden, path)
        return path

    def scan(self) -> DiscoveredFiles:
        self.now += SECOND
        return self.discovery.scan(self.now)

    def load(self, *landed: FoundFile) -> None:
        self.loaded.update((each.name, each) for each in landed)

    def seen(self, name: str) -> SeenFile:
        path = self.root / name
        return SeenFile(name, str(path), path.stat().st_size, path.stat().st_mtime_ns)


def repeated(path: Path) -> RepeatedFile:
    seen = path.stat()
    return RepeatedFile("packets", path.name, seen.st_size, seen.st_mtime_ns, content_digest(path))


def test_a_new_file_lands_with_all_that_is_to_be_known(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.put("d/a.csv", "2024-05-06T11:59:00", "2024-05-06T11:59:30")
    seen = project.seen("d/a.csv")
    newest_us = NOW - 30 * SECOND
    assert project.scan() == DiscoveredFiles(
        landed=[
            FoundFile(
                feed="packets",
                name="d/a.csv",
                size=seen.size,
                mtime_ns=seen.mtime_ns,
                digest=content_digest(path),
                arrival_us=NOW + SECOND,
                records=2,
                oldest_us=NOW - 60 * SECOND,
                newest_us=newest_us,
                timestamp_us=newest_us,
                cut=False,
            )
        ]
    )
    assert project.scan() == NOTHING


def test_files_come_by_timestamp_and_then_by_name(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for name, timestamp in {"c": "11:58", "a": "11:59", "d": "11:57", "b": "11:58"}.items():
        project.put(f"{name}.csv", f"2024-05-06T{timestamp}:00")
    assert [landed.name for landed in project.scan().landed] == ["d.csv", "b.csv", "c.csv", "a.csv"]


def test_lateness_is_taken_off(tmp_path: Path) -> None:
    project = Project(tmp_path, replace(FEED, landing=replace(LANDING, lateness_us=10 * SECOND)))
    project.put("a.csv", "2024-05-06T12:00:00")
    (landed,) = project.scan().landed
    assert (landed.newest_us, landed.timestamp_us, landed.cut) == (NOW, NOW - 10 * SECOND, False)


def test_a_timestamp_too_far_ahead_of_its_arrival_is_cut_to_it(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.put("a.csv", "2024-05-06T12:01:01")  # a period after its arrival at 12:00:01
    project.put("b.csv", "2024-05-06T12:01:01.000001")
    a, b = sorted(project.scan().landed, key=lambda landed: landed.name)
    assert (a.timestamp_us, a.cut) == (NOW + 61 * SECOND, False)
    assert (b.newest_us, b.timestamp_us, b.cut) == (NOW + 61 * SECOND + 1, NOW + SECOND, True)


def test_ahead_may_be_declared_and_lateness_comes_off_what_is_cut(tmp_path: Path) -> None:
    landing = replace(LANDING, ahead_us=0, lateness_us=5 * SECOND)
    project = Project(tmp_path, replace(FEED, landing=landing))
    project.put("a.csv", "2024-05-06T12:00:02")
    (landed,) = project.scan().landed
    assert (landed.timestamp_us, landed.cut) == (NOW + SECOND - 5 * SECOND, True)


def test_a_file_without_records_lands_without_a_timestamp_when_it_stays_so(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.put("empty.csv", text="")
    project.put("header.csv")
    assert [project.scan(), project.scan()] == [NOTHING, NOTHING]
    assert [(each.name, each.timestamp_us, each.cut) for each in project.scan().landed] == [
        ("empty.csv", None, False),
        ("header.csv", None, False),
    ]
    assert project.scan() == NOTHING


def test_a_file_that_was_loaded_is_no_news_after_a_restart(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.put("a.csv", "2024-05-06T11:59:00")
    project.load(*project.scan().landed)
    project.restart()
    assert project.scan() == NOTHING


def test_a_file_that_was_loaded_and_should_be_gone_is_told_again_after_a_restart(tmp_path: Path) -> None:
    project = Project(tmp_path, replace(FEED, landing=replace(LANDING, after_load="delete")))
    path = project.put("a.csv", "2024-05-06T11:59:00")
    project.load(*project.scan().landed)
    assert project.scan() == NOTHING
    project.restart()
    assert project.scan() == DiscoveredFiles(repeated=[repeated(path)])
    assert project.scan() == NOTHING


def test_the_same_content_again_is_told_and_not_landed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.put("a.csv", "2024-05-06T11:59:00")
    project.load(*project.scan().landed)
    os.utime(path, ns=(1, 1))
    assert project.scan() == DiscoveredFiles(repeated=[repeated(path)])
    assert project.scan() == NOTHING


def test_other_content_under_a_name_that_was_loaded_clashes_when_it_stays_so(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.put("a.csv", "2024-05-06T11:59:00")
    project.load(*project.scan().landed)
    path = project.put("a.csv", "2024-05-06T11:59:00", "2024-05-06T11:59:01")
    assert [project.scan(), project.scan()] == [NOTHING, NOTHING]
    assert project.scan() == DiscoveredFiles(clashes=[NameClash("packets", "a.csv", path, LOADED_BEFORE)])
    assert project.scan() == NOTHING


def test_an_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.put("a.csv", "2024-05-06T11:59:00")
    (landed,) = project.scan().landed
    project.load(replace(landed, digest="of another file"))
    project.restart()
    assert project.scan() == NOTHING
    os.utime(path, ns=(1, 1))
    assert [len(project.scan().clashes) for _ in range(3)] == [0, 0, 1]


def test_a_file_that_changes_before_it_is_loaded_is_told_as_changed(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.put("a.csv", "2024-05-06T11:58:00")
    project.scan()
    path = project.put("a.csv", "2024-05-06T11:59:00")
    result = project.scan()
    assert [(each.name, each.timestamp_us) for each in result.changed] == [("a.csv", NOW - MINUTE)]
    assert result.landed == []
    os.utime(path, ns=(1, 1))
    assert project.scan() == NOTHING


def test_a_loaded_file_is_forgotten_once_it_is_known_as_loaded(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.put("a.csv", "2024-05-06T11:58:00")
    (landed,) = project.scan().landed
    project.discovery.loaded("a.csv")  # its commit is not in the ledger yet
    os.utime(path, ns=(1, 1))
    assert project.scan() == NOTHING
    project.load(landed)
    project.discovery.loaded("a.csv")
    assert not project.discovery._digests
    os.utime(path, ns=(2, 2))
    assert project.scan() == DiscoveredFiles(repeated=[repeated(path)])
    project.put("a.csv", "2024-05-06T11:59:00")
    assert [len(project.scan().clashes) for _ in range(3)] == [0, 0, 1]


def test_an_unreadable_file_is_told_after_three_scans(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.put("a.csv", "soon")
    assert [project.scan(), project.scan()] == [NOTHING, NOTHING]
    assert project.scan() == DiscoveredFiles(
        unreadable=[RejectedFile("packets", "a.csv", path, "'soon' is not a timestamp")]
    )
    assert project.scan() == NOTHING


def test_a_file_that_is_still_being_written_is_given_time(tmp_path: Path) -> None:
    project = Project(tmp_path, full_every=100)
    path = tmp_path / "a.csv"
    for text in (
        "ts,n\n2024",
        "ts,n\n2024-05-06T11",
        "ts,n\n2024-05-06T11:59:0",
        "ts,n\n2024-05-06T11:59:00",
    ):
        path.write_text(text)  # in place
        assert [project.scan(), project.scan()] == [NOTHING, NOTHING]
    path.write_text("ts,n\n2024-05-06T11:59:00,1\n")
    assert [landed.timestamp_us for landed in project.scan().landed] == [NOW - MINUTE]


def test_an_unreadable_file_that_is_mended_lands(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.put("a.csv", "soon")
    assert [len(project.scan().unreadable) for _ in range(4)] == [0, 0, 1, 0]
    project.put("a.csv", "2024-05-06T11:59:00")
    assert [landed.name for landed in project.scan().landed] == ["a.csv"]


def test_a_file_that_went_and_comes_back_lands_again_if_it_was_not_loaded(tmp_path: Path) -> None:
    project = Project(tmp_path)
    path = project.put("a.csv", "2024-05-06T11:59:00")
    project.scan()
    os.rename(path, tmp_path / ".a.csv")
    assert project.scan() == NOTHING
    os.rename(tmp_path / ".a.csv", path)
    assert [landed.name for landed in project.scan().landed] == ["a.csv"]


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    project = Project(tmp_path / "later")
    assert project.scan() == DiscoveredFiles(missing=True)
    project.put("a.csv", "2024-05-06T11:59:00")
    result = project.scan()
    assert (result.missing, [landed.name for landed in result.landed]) == (False, ["a.csv"])


def test_a_name_may_carry_the_timestamp(tmp_path: Path) -> None:
    landing = replace(LANDING, name_timestamp="a-%Y%m%dT%H%M.csv", lateness_us=SECOND)
    project = Project(tmp_path, replace(FEED, landing=landing))
    project.put("a-20240506T1159.csv", "not looked at")
    path = project.put("b.csv", "not looked at")
    assert [landed.timestamp_us for landed in project.scan().landed] == [NOW - MINUTE - SECOND]
    project.scan()
    reason = "its name does not follow the pattern a-%Y%m%dT%H%M.csv"
    assert project.scan().unreadable == [RejectedFile("packets", "b.csv", path, reason)]


def test_a_scan_that_ends_in_an_error_loses_nothing(tmp_path: Path) -> None:
    names = [f"{number}.csv" for number in range(9)]
    project = Project(tmp_path, full_every=100)
    for name in names:
        project.put(name, "2024-05-06T11:59:00")
    calls = iter(range(100))

    def known(name: str) -> None:
        if next(calls) == 4:
            raise OSError("the ledger is locked")

    discovery = Discovery(FEED, tmp_path, known, full_every=100)
    with pytest.raises(OSError, match="the ledger is locked"):
        discovery.scan(NOW)
    assert [landed.name for landed in discovery.scan(NOW).landed] == names
    assert discovery.scan(NOW) == NOTHING


@contextmanager
def no_file_can_be_opened() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_machine_in_trouble_costs_no_file(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for name in "abc":
        project.put(f"{name}.csv", "2024-05-06T11:59:00")
    discovery = Discovery(FEED, tmp_path, project.loaded.get)
    assert discovery.scan(NOW, bytes_max=1) == DiscoveredFiles(left=2)
    with no_file_can_be_opened():
        told = [discovery.scan(NOW) for _ in range(5)]
    assert [[landed.name for landed in each.landed] for each in told] == [["a.csv"], [], [], [], []]
    assert [each.unreadable for each in told] == [[]] * 5
    assert [each.troubles for each in told] == [{"b.csv": "Too many open files"}] * 5  # the first of them
    told_then = discovery.scan(NOW)
    assert ([landed.name for landed in told_then.landed], told_then.troubles) == (["b.csv", "c.csv"], {})


def test_a_corrupt_file_that_cannot_be_opened_for_a_while_is_corrupt_all_the_same(tmp_path: Path) -> None:
    with closing(ParquetProcess()) as process:
        project = Project(
            tmp_path, replace(FEED, landing=replace(LANDING, format="parquet")), process=process
        )
        project.put("a.parquet", text="PAR1, it says")
        project.scan()
        with no_file_can_be_opened(), pytest.raises(OSError, match="Too many open files"):
            parquet_records(tmp_path / "a.parquet", parse_columns("ts timestamp"), "ts")
        assert [len(project.scan().unreadable) for _ in range(3)] == [0, 1, 0]


def test_a_file_that_cannot_be_looked_at_keeps_no_other_from_landing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for name in ("a.csv", "d/b.csv", "e.csv"):
        project.put(name, "2024-05-06T11:59:00")
    discovery = Discovery(FEED, tmp_path, project.loaded.get)
    assert discovery.scan(NOW, bytes_max=1) == DiscoveredFiles(left=2)
    os.rename(tmp_path / "d", tmp_path / ".d")
    (tmp_path / "d").symlink_to("d")  # it leads nowhere, for ever
    told = discovery.scan(NOW)
    assert [landed.name for landed in told.landed] == ["a.csv", "e.csv"]
    assert told.troubles == {"d/b.csv": "Too many levels of symbolic links"}
    assert discovery.scan(NOW) == DiscoveredFiles(link="d")
    assert discovery.scan(NOW) == NOTHING
    (tmp_path / "d").unlink()
    os.rename(tmp_path / ".d", tmp_path / "d")
    assert [landed.name for landed in discovery.scan(NOW).landed] == ["d/b.csv"]


def test_a_backlog_is_examined_in_parts_and_told_at_once_by_timestamp(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for number in range(9):  # the later its name, the older its records
        project.put(f"{number}.csv", f"2024-05-06T11:5{9 - number}:00")
    discovery = Discovery(FEED, tmp_path, project.loaded.get)
    assert discovery.scan(NOW, bytes_max=1) == DiscoveredFiles(left=8)
    assert discovery.scan(NOW, bytes_max=1) == DiscoveredFiles(left=7)
    project.put("a.csv", "2024-05-06T11:49:00")  # not of this round
    (tmp_path / "8.csv").unlink()
    assert discovery.scan(NOW, bytes_max=1 << 20) == DiscoveredFiles(left=3)
    told = discovery.scan(NOW)
    assert [landed.name for landed in told.landed] == [f"{number}.csv" for number in range(7, -1, -1)]
    assert told.left == 0
    assert [landed.name for landed in discovery.scan(NOW, bytes_max=1).landed] == ["a.csv"]
    assert discovery.scan(NOW, bytes_max=1) == NOTHING


def test_files_that_are_known_are_passed_over_in_one_scan(tmp_path: Path) -> None:
    project = Project(tmp_path)
    for number in range(50):
        project.put(f"{number}.csv", "2024-05-06T11:59:00")
    project.load(*project.scan().landed)
    project.put("new.csv", "2024-05-06T11:59:30")
    discovery = Discovery(FEED, tmp_path, project.loaded.get)
    scans = [discovery.scan(NOW, bytes_max=1) for _ in range(2)]  # the new file may be the first it sees
    assert [landed.name for scan in scans for landed in scan.landed] == ["new.csv"]


def test_thousands_of_known_files_cost_nothing_until_one_comes(tmp_path: Path) -> None:
    project = Project(tmp_path, full_every=100)
    for number in range(3_000):
        (tmp_path / f"{number}.csv").write_text("ts,n\n2024-05-06T11:59:00,1\n")
    project.load(*project.scan().landed)
    asked: list[str] = []
    discovery = Discovery(
        FEED, tmp_path, lambda name: asked.append(name) or project.loaded.get(name), full_every=100
    )
    assert discovery.scan(NOW) == NOTHING
    assert len(asked) == 3_000
    started = time.perf_counter()
    assert [discovery.scan(NOW) for _ in range(10)] == [NOTHING] * 10
    assert time.perf_counter() - started < 0.5
    assert len(asked) == 3_000
    project.put("new.csv", "2024-05-06T11:59:30")
    assert [landed.name for landed in discovery.scan(NOW).landed] == ["new.csv"]
    assert asked[3_000:] == ["new.csv"]
