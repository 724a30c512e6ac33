"""Files that could not be loaded: kept with the reason, tried again, dropped."""

import errno
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.errors import InputError
from freshline.storage.control.quarantine import Quarantine, QuarantinedFile, QuarantineInPlace

AT = 1_700_000_000_000_001


@pytest.fixture
def quarantine(tmp_path: Path) -> Quarantine:
    return Quarantine(tmp_path / "quarantine", clock=lambda: AT * 1_000)


def landed(tmp_path: Path, name: str, content: str = "bad") -> Path:
    path = tmp_path / "landing" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_a_file_is_kept_with_its_reason(tmp_path: Path, quarantine: Quarantine) -> None:
    path = landed(tmp_path, "day/a.csv")
    entry = quarantine.put("flows", "day/a.csv", path, "two columns, not three", 3)
    assert entry == QuarantinedFile("flows/day/a.csv", "flows", "day/a.csv", "two columns, not three", 3, AT)
    assert quarantine.entries() == [entry]
    assert not path.exists()
    assert (tmp_path / "quarantine/files/flows/day/a.csv").read_text() == "bad"
    assert json.loads((tmp_path / "quarantine/reasons/flows/day/a.csv.json").read_text()) == {
        "feed": "flows",
        "name": "day/a.csv",
        "reason": "two columns, not three",
        "attempts": 3,
        "at": AT,
    }


def test_in_a_trial_files_stay_where_they_are(tmp_path: Path) -> None:
    path = landed(tmp_path, "day/a.csv")
    trial = QuarantineInPlace(tmp_path / "quarantine", clock=lambda: AT * 1_000)
    entry = trial.put("flows", "day/a.csv", path, "two columns, not three", 3)
    assert entry == QuarantinedFile("flows/day/a.csv", "flows", "day/a.csv", "two columns, not three", 3, AT)
    assert path.read_text() == "bad"
    assert trial.entries() == []
    assert not (tmp_path / "quarantine").exists()


def test_files_of_the_same_name_get_numbers(tmp_path: Path, quarantine: Quarantine) -> None:
    entries = [
        quarantine.put("flows", "a.csv", landed(tmp_path, "a.csv", content), content, 1)
        for content in ("first", "second", "third")
    ]
    assert [entry.stored for entry in entries] == ["flows/a.csv", "flows/a~2.csv", "flows/a~3.csv"]
    assert quarantine.entries() == entries
    quarantine.drop(entries[1])
    assert quarantine.entries() == [entries[0], entries[2]]
    back = quarantine.retry(entries[2], tmp_path / "landing")
    assert (back, back.read_text()) == (tmp_path / "landing/a.csv", "third")


def test_a_file_named_like_a_reason_is_a_file(tmp_path: Path, quarantine: Quarantine) -> None:
    entries = [quarantine.put("f", n, landed(tmp_path, n), n, 1) for n in ("a.csv", "a.csv.json")]
    assert quarantine.entries() == entries


def test_a_file_tried_again_is_back_in_its_landing_folder(tmp_path: Path, quarantine: Quarantine) -> None:
    entry = quarantine.put("flows", "day/a.csv", landed(tmp_path, "day/a.csv"), "bad", 1)
    assert quarantine.retry(entry, tmp_path / "landing").read_text() == "bad"
    assert quarantine.entries() == []
    assert not list((tmp_path / "quarantine").rglob("*.*"))


def test_a_file_does_not_overwrite_one_that_has_come_since(tmp_path: Path, quarantine: Quarantine) -> None:
    entry = quarantine.put("flows", "a.csv", landed(tmp_path, "a.csv"), "bad", 1)
    landed(tmp_path, "a.csv", "new")
    with pytest.raises(InputError, match="already exists"):
        quarantine.retry(entry, tmp_path / "landing")
    assert quarantine.entries() == [entry]


@pytest.mark.parametrize(("feed", "name"), [("flows", "../x"), ("..", "x"), ("flows", "/etc/x"), ("", "x")])
def test_names_cannot_leave_the_quarantine(
    tmp_path: Path, quarantine: Quarantine, feed: str, name: str
) -> None:
    path = landed(tmp_path, "a.csv")
    with pytest.raises(InputError, match="leads out of"):
        quarantine.put(feed, name, path, "bad", 1)
    assert path.exists()
    with pytest.raises(InputError, match="leads out of"):
        quarantine.drop(QuarantinedFile("../x", "flows", "x", "bad", 1, AT))


def test_a_crash_before_the_move_loses_nothing(
    tmp_path: Path, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = landed(tmp_path, "a.csv")

    def crash(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("freshline.storage.control.quarantine._move", crash)
        with pytest.raises(KeyboardInterrupt):
            quarantine.put("flows", "a.csv", path, "first time", 1)
    assert (path.read_text(), quarantine.entries()) == ("bad", [])
    entry = quarantine.put("flows", "a.csv", path, "second time", 2)
    assert quarantine.entries() == [entry]
    assert entry.stored == "flows/a.csv"


def test_a_file_is_moved_to_another_file_system_too(
    tmp_path: Path, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = landed(tmp_path, "a.csv", "whole")
    rename = Path.rename

    def other_file_system(self: Path, target: Path) -> Path:
        if self == path:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", other_file_system)
    entry = quarantine.put("flows", "a.csv", path, "bad", 1)
    assert quarantine.entries() == [entry]
    assert [file.name for file in (tmp_path / "quarantine/files/flows").iterdir()] == ["a.csv"]
    assert (tmp_path / "quarantine/files/flows/a.csv").read_text() == "whole"
    assert not path.exists()


def test_a_file_that_is_gone_is_an_error_of_the_system(tmp_path: Path, quarantine: Quarantine) -> None:
    with pytest.raises(FileNotFoundError):
        quarantine.put("flows", "a.csv", tmp_path / "nowhere.csv", "bad", 1)
    assert quarantine.entries() == []


LONGEST = 255  # bytes, of one part of a path


@given(
    stem=st.text("aé日🚀~. ", min_size=1, max_size=120),
    bytes_long=st.integers(1, LONGEST),
    suffix=st.sampled_from(["", ".csv", ".json.gz", "." + "x" * 100]),
    times=st.integers(1, 3),
)
def test_a_file_is_kept_whatever_the_length_of_its_name(
    stem: str, bytes_long: int, suffix: str, times: int
) -> None:
    end = suffix.encode()[:bytes_long]
    beginning = f"a{stem}".encode().ljust(bytes_long, b"b")[: bytes_long - len(end)].decode(errors="ignore")
    name = beginning + end.decode()
    hypothesis.assume(name and name[0] not in "._")
    with TemporaryDirectory() as folder:
        root = Path(folder)
        quarantine = Quarantine(root / "quarantine", clock=lambda: AT * 1_000)
        entries = [
            quarantine.put("flows", f"day/{name}", landed(root, f"day/{name}", str(number)), "bad", 1)
            for number in range(times)
        ]
        assert len({entry.stored for entry in entries}) == times
        assert {entry.name for entry in entries} == {f"day/{name}"}
        assert sorted(quarantine.entries(), key=str) == sorted(entries, key=str)
        for number, entry in enumerate(entries):
            back = quarantine.retry(entry, root / "landing")
            assert (back, back.read_text()) == (root / "landing/day" / name, str(number))
            quarantine.drop(quarantine.put("flows", f"day/{name}", back, "bad", 2))
        assert quarantine.entries() == []
        assert not [path for path in (root / "quarantine").rglob("*") if path.is_file()]


def test_long_names_with_the_same_beginning_are_told_apart(tmp_path: Path, quarantine: Quarantine) -> None:
    names = ["x" * 250 + end for end in ("a.csv", "b.csv")]
    entries = [quarantine.put("flows", name, landed(tmp_path, name, name), "bad", 1) for name in names]
    assert all(len(Path(entry.stored).name) <= 240 and entry.stored.endswith(".csv") for entry in entries)
    assert [quarantine.retry(entry, tmp_path / "landing").read_text() for entry in entries] == names


def test_a_move_that_breaks_off_leaves_no_half_file(
    tmp_path: Path, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "y" * LONGEST
    path = landed(tmp_path, name, "whole")
    rename = Path.rename

    def other_file_system(self: Path, target: Path) -> Path:
        if self == path:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(self, target)

    def full(source: Path, target: Path) -> None:
        Path(target).write_text("wh")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "rename", other_file_system)
    with monkeypatch.context() as patched:
        patched.setattr("shutil.copy2", full)
        with pytest.raises(OSError, match="No space left"):
            quarantine.put("flows", name, path, "bad", 1)
    assert (path.read_text(), quarantine.entries()) == ("whole", [])
    assert list((tmp_path / "quarantine/files/flows").iterdir()) == []
    entry = quarantine.put("flows", name, path, "bad", 1)
    assert (quarantine.entries(), path.exists()) == ([entry], False)
