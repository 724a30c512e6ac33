"""A feed's files land where nothing else is: all that lies there is taken."""

from pathlib import Path

import pytest

from freshline.definitions.errors import DefinitionErrors
from freshline.definitions.load import load
from freshline.landing.directories import landing_directories
from freshline.live.runner import Runner

FEED = "{{path: {}, period: 10s, format: csv, schema: ts timestamp, timestamp: ts}}"


def directories(project: Path, storage: str, **paths: str | Path) -> dict[str, Path]:
    feeds = "".join(f"  {name}: {FEED.format(path)}\n" for name, path in paths.items())
    file = project / "freshline.yml"
    head, tables = "name: shop\npools: {main: {tracks: 1}}\nfeeds:\n", "tables: {t: {feed: a}}\n"
    file.write_text(f"{head}{feeds}{tables}")
    return landing_directories(load(file), project, project / storage)


def complaints(project: Path, storage: str, **paths: str | Path) -> list[str]:
    """What is said of each feed; the first is on line 4."""
    with pytest.raises(DefinitionErrors) as raised:
        directories(project, storage, **paths)
    return [str(error).removeprefix(f"{project}/freshline.yml:") for error in raised.value.errors]


def refused(line: int, feed: str, directory: Path, wrong: str) -> str:
    remedy = f"Give the feed a directory of its own, such as `path: landing/{feed}`."
    return f"{line}: feeds.{feed}.path: the directory {directory} cannot be used: {wrong}. {remedy}"


@pytest.mark.parametrize("storage", ["warehouse", "../elsewhere", "landing_warehouse", "in/warehouse"])
def test_directories_apart_from_everything_are_fine(tmp_path: Path, storage: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    outside = tmp_path / "outside"
    assert directories(project, storage, a="landing", b="landing_b", c="in/c", d=outside) == {
        "a": project / "landing",
        "b": project / "landing_b",
        "c": project / "in/c",
        "d": outside,
    }


def test_a_directory_that_is_or_holds_the_storage_or_lies_in_it_is_refused(tmp_path: Path) -> None:
    holds, lies = "it holds the storage", "it lies in the storage"
    assert complaints(tmp_path, "warehouse", a=".") == [refused(4, "a", tmp_path, holds)]
    assert complaints(tmp_path, "in/warehouse", a="in") == [refused(4, "a", tmp_path / "in", holds)]
    assert complaints(tmp_path, "in", a="in") == [refused(4, "a", tmp_path / "in", holds)]
    assert complaints(tmp_path, "w", a="in", b="w/in") == [refused(5, "b", tmp_path / "w/in", lies)]


def test_a_directory_that_holds_the_projects_file_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    holds = "it holds the project's own file"
    assert complaints(project, "../warehouse", a=".") == [refused(4, "a", project, holds)]
    assert complaints(project, "/warehouse", a="..", b="b") == [refused(4, "a", tmp_path, holds)]


def test_directories_of_two_feeds_that_meet_are_refused(tmp_path: Path) -> None:
    holds, same = "it holds that of feed b, and all below it is taken", "it is that of feed a already"
    landing = tmp_path / "landing"
    assert complaints(tmp_path, "w", a="landing", b="landing/b") == [refused(4, "a", landing, holds)]
    assert complaints(tmp_path, "w", b="landing/2026/b", a="landing") == [refused(5, "a", landing, holds)]
    assert complaints(tmp_path, "w", a="landing", b="./landing/") == [refused(5, "b", landing, same)]


def test_links_hide_nothing(tmp_path: Path) -> None:
    project, disk = tmp_path / "project", tmp_path / "disk"
    (disk / "warehouse").mkdir(parents=True)
    project.mkdir()
    (project / "warehouse").symlink_to(disk / "warehouse")
    (project / "landing").symlink_to(disk)
    (project / "b").symlink_to(disk / "in")
    assert complaints(project, "warehouse", a="landing") == [refused(4, "a", disk, "it holds the storage")]
    assert complaints(project, "storage", a="landing/in", b="b") == [
        refused(5, "b", disk / "in", "it is that of feed a already")
    ]


def test_no_run_opens_with_such_a_directory_and_everything_stays_where_it_is(tmp_path: Path) -> None:
    assert len(complaints(tmp_path, "warehouse", a=".")) == 1
    with pytest.raises(DefinitionErrors, match=r"freshline.yml:4: feeds.a.path: .* holds the storage"):
        Runner(load(tmp_path / "freshline.yml"), tmp_path, tmp_path / "warehouse")
    assert [path.name for path in tmp_path.iterdir()] == ["freshline.yml"]
