"""Which files are visible, and which of them are new."""

import errno
import os
from pathlib import Path

import pytest

from freshline.landing.scanner import Scanner as LandingScanner
from freshline.landing.scanner import SeenFile

NOW = 1_700_000_000_000_000  # µs
OLD_NS = (NOW - 3_600_000_000) * 1_000


def put(path: Path, text: str = "x", mtime_ns: int = OLD_NS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, ns=(mtime_ns, mtime_ns))
    return path


def settle(*folders: Path, mtime_ns: int = OLD_NS) -> None:
    for folder in folders:
        os.utime(folder, ns=(mtime_ns, mtime_ns))


def names(found: list[SeenFile]) -> list[str]:
    return sorted(each.name for each in found)


class Scanner(LandingScanner):
    """A scanner whose user keeps the files that it says are there."""

    def __init__(self, root: Path, full_every: int = 60) -> None:
        super().__init__(root, full_every)
        self.there: dict[str, SeenFile] = {}

    def see(self, now_us: int) -> list[SeenFile]:
        """All visible files at this instant."""
        self.scan(now_us)
        for name in self.gone:
            del self.there[name]
        self.there |= {found.name: found for found in self.fresh}
        return [*self.there.values()]


def test_all_visible_files_are_found_with_their_size_and_time(tmp_path: Path) -> None:
    path = put(tmp_path / "2024" / "05" / "a.csv", "four")
    put(tmp_path / "b.csv")
    scanner = Scanner(tmp_path)
    found = {each.name: each for each in scanner.see(NOW)}
    assert found.keys() == {"2024/05/a.csv", "b.csv"}
    assert found["2024/05/a.csv"] == SeenFile("2024/05/a.csv", str(path), 4, OLD_NS)
    assert names(scanner.fresh) == ["2024/05/a.csv", "b.csv"]


@pytest.mark.parametrize("name", [".a.csv", "_a.csv", "a.csv.tmp", ".d/a.csv", "_d/a.csv", "d.tmp/a.csv"])
def test_a_hidden_name_does_not_count(tmp_path: Path, name: str) -> None:
    put(tmp_path / name)
    put(tmp_path / "d" / "a_.csv")
    assert names(Scanner(tmp_path).see(NOW)) == ["d/a_.csv"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "a.csv")
    root = tmp_path / "root"
    put(root / "b.csv")
    (root / "link.csv").symlink_to(outside)
    (root / "folder").symlink_to(outside.parent)
    (root / "again").symlink_to(root)
    (root / "broken").symlink_to(tmp_path / "nowhere")
    assert names(Scanner(root).see(NOW)) == ["b.csv"]


def test_what_is_no_regular_file_does_not_count(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert Scanner(tmp_path).see(NOW) == []


def test_a_root_that_is_not_there_is_missing_until_it_is(tmp_path: Path) -> None:
    scanner = Scanner(tmp_path / "root")
    assert (scanner.see(NOW), scanner.missing) == ([], True)
    put(tmp_path / "root" / "a.csv")
    assert (names(scanner.see(NOW)), scanner.missing) == (["a.csv"], False)
    os.remove(tmp_path / "root" / "a.csv")
    os.rmdir(tmp_path / "root")
    assert (scanner.see(NOW), scanner.missing, scanner.gone) == ([], True, ["a.csv"])


def test_a_file_is_fresh_once(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    scanner = Scanner(tmp_path)
    scanner.see(NOW)
    assert (names(scanner.see(NOW)), scanner.fresh, scanner.gone) == (["a.csv"], [], [])
    put(tmp_path / "b.csv")
    assert (names(scanner.see(NOW)), names(scanner.fresh)) == (["a.csv", "b.csv"], ["b.csv"])


def test_files_and_folders_that_go_are_told(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    put(tmp_path / "d" / "b.csv")
    put(tmp_path / "d" / "e" / "c.csv")
    scanner = Scanner(tmp_path)
    scanner.see(NOW)
    os.remove(tmp_path / "a.csv")
    os.rename(tmp_path / "d", tmp_path / ".d")
    assert scanner.see(NOW) == []
    assert sorted(scanner.gone) == ["a.csv", "d/b.csv", "d/e/c.csv"]


def test_a_file_in_a_new_folder_is_found(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    settle(tmp_path)
    scanner = Scanner(tmp_path)
    scanner.see(NOW)
    put(tmp_path / "d" / "e" / "b.csv")
    scanner.see(NOW)
    assert names(scanner.fresh) == ["d/e/b.csv"]


def test_a_folder_that_is_as_it_was_is_not_listed_again(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    settle(tmp_path)
    scanner = Scanner(tmp_path, full_every=3)
    scanner.see(NOW)
    put(tmp_path / "b.csv")
    settle(tmp_path)  # as if nothing had come
    assert [names(scanner.see(NOW)) for _ in range(3)] == [["a.csv"], ["a.csv"], ["a.csv", "b.csv"]]


def test_a_file_that_comes_within_a_tick_of_the_last_scan_is_found(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    tick_ns = (NOW - 1_000_000) * 1_000
    settle(tmp_path, mtime_ns=tick_ns)
    scanner = Scanner(tmp_path)
    scanner.see(NOW)
    put(tmp_path / "b.csv")
    settle(tmp_path, mtime_ns=tick_ns)  # a coarse clock: the same modification time as before
    scanner.see(NOW + 5_000_000)
    assert names(scanner.fresh) == ["b.csv"]


def test_a_file_that_is_replaced_is_fresh_at_once(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "old")
    settle(tmp_path)
    scanner = Scanner(tmp_path)
    scanner.see(NOW)
    os.replace(put(tmp_path / ".a.csv", "other"), tmp_path / "a.csv")
    scanner.see(NOW)
    assert [(each.name, each.size) for each in scanner.fresh] == [("a.csv", 5)]


def test_a_file_overwritten_in_place_is_fresh_at_the_next_full_scan(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", "old")
    settle(tmp_path)
    scanner = Scanner(tmp_path, full_every=3)
    scanner.see(NOW)
    put(tmp_path / "a.csv", "other")
    fresh = []
    for _ in range(3):
        scanner.see(NOW)
        fresh.append(names(scanner.fresh))
    assert fresh == [[], [], ["a.csv"]]


def test_many_files_that_have_been_left_are_looked_at_less_often(tmp_path: Path) -> None:
    """So that a run takes no time for them while nothing comes: 0.1 s between looks for each above 100."""
    for number in range(150):
        put(tmp_path / f"{number}.csv", "old")
    settle(tmp_path)
    scanner = Scanner(tmp_path, full_every=3)
    scanner.see(NOW)
    put(tmp_path / "7.csv", "other")
    fresh = []
    for seconds in (1, 2, 3, 4, 5, 6):
        scanner.see(NOW + seconds * 1_000_000)
        fresh.append(names(scanner.fresh))
    assert fresh == [[], [], [], [], ["7.csv"], []]
    put(tmp_path / "new.csv")
    scanner.see(NOW + 7_000_000)
    assert names(scanner.fresh) == ["new.csv"]


def test_a_file_that_is_being_written_is_fresh_whenever_it_has_grown(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", "a", NOW * 1_000)
    settle(tmp_path)
    scanner = Scanner(tmp_path)
    scanner.see(NOW)
    put(path, "ab", NOW * 1_000 + 1)
    scanner.see(NOW)
    assert [each.size for each in scanner.fresh] == [2]
    scanner.see(NOW)
    assert scanner.fresh == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
def test_a_folder_that_may_not_be_listed_is_told_and_keeps_its_files(tmp_path: Path) -> None:
    put(tmp_path / "a.csv")
    put(tmp_path / "d" / "b.csv")
    scanner = Scanner(tmp_path, full_every=1)
    scanner.see(NOW)
    (tmp_path / "d").chmod(0)
    try:
        assert names(scanner.see(NOW)) == ["a.csv", "d/b.csv"]
        assert (scanner.troubles, scanner.gone) == ({"d": "Permission denied"}, [])
    finally:
        (tmp_path / "d").chmod(0o700)


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    scanner = Scanner(put(tmp_path / "a.csv"))
    assert (scanner.see(NOW), scanner.missing, scanner.troubles) == ([], False, {"": "Not a directory"})


def test_a_name_that_is_not_text_is_told(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/a\xff.csv", "w"):
        pass
    scanner = Scanner(tmp_path)
    assert scanner.see(NOW) == []
    assert scanner.troubles == {"": "the name 'a\\udcff.csv' is not UTF-8"}


def test_a_file_that_cannot_be_looked_at_is_tried_again_and_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        put(tmp_path / "d" / f"{name}.csv")
    settle(tmp_path / "d", tmp_path)
    scanner = Scanner(tmp_path)

    def broken(path: str, **options: bool) -> os.stat_result:
        if path.endswith("b.csv"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return seen(path, **options)

    seen = os.stat
    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", broken)
        for _ in range(2):
            assert names(scanner.see(NOW)) == ["d/a.csv", "d/c.csv"]
            assert (scanner.troubles, scanner.gone) == ({"d/b.csv": "Input/output error"}, [])
    scanner.see(NOW)
    assert (names(scanner.fresh), scanner.troubles) == (["d/b.csv"], {})
