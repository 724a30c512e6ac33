"""A feed's files land where nothing else is: all that lies there is taken."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.base.errors import DefinitionErrors
from freshline.cli.main import app
from freshline.definitions.load import load
from freshline.definitions.sections.feeds import Landing
from freshline.landing.directories import (
    check_directories,
    doubt,
    landing_directories,
    remember_directories,
)
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner

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
    holds, same = "it contains the directory of feed b", "the feed a has the same directory"
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
        refused(5, "b", disk / "in", "the feed a has the same directory")
    ]


def test_no_run_opens_with_such_a_directory_and_everything_stays_where_it_is(tmp_path: Path) -> None:
    assert len(complaints(tmp_path, "warehouse", a=".")) == 1
    with pytest.raises(DefinitionErrors, match=r"freshline.yml:4: feeds.a.path: .* holds the storage"):
        Runner(load(tmp_path / "freshline.yml"), tmp_path, tmp_path / "warehouse")
    assert [path.name for path in tmp_path.iterdir()] == ["freshline.yml"]


def test_plan_refuses_them_as_well(tmp_path: Path) -> None:
    complaints(tmp_path, "warehouse", a="landing", b="landing/b")
    result = CliRunner().invoke(app, ["plan", "-p", str(tmp_path)])
    assert isinstance(result.exception, DefinitionErrors)
    assert "it contains the directory of feed b" in str(result.exception)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("/", "is the root of the file system"),
        ("/etc", "is a system directory"),
        ("/etc/cron.d", "is a system directory"),
        ("/usr/share/doc", "is a system directory"),
        ("/proc/sys", "is a system directory"),
        ("/dev/shm", "is a system directory"),
        ("/var", "is a system directory"),
        ("/var/log", "is a system directory"),
        ("/tmp", "is a system directory"),
        ("/home", "is a system directory"),
        ("/home/ann", "is a home directory"),
        ("/root", "is a home directory"),
        ("HOME", "is a home directory"),
        ("HOME/.ssh", "is hidden in a home directory, where programs keep their own files"),
        ("/var/log/nginx", "is a system directory"),
        ("/var/lib/postgresql/16", "is a system directory"),
        ("/var/spool/cron/crontabs", "is a system directory"),
        ("/var/spool", "is a system directory"),
        ("/var/run/docker", "is a system directory"),
        ("/private/etc/ssh", "is a system directory"),
        ("/run/secrets", "is a system directory"),
        ("/snap/core/1", "is a system directory"),
        ("/nix/store", "is a system directory"),
        ("/lost+found", "is a system directory"),
        ("/etc/new\nline", "is a system directory"),
        ("HOME/.config/gcloud", "is hidden in a home directory, where programs keep their own files"),
        ("HOME/shop/.cache/in", "is hidden in a home directory, where programs keep their own files"),
        ("/home/bob/.ssh", "is hidden in a home directory, where programs keep their own files"),
        ("/root/.ssh/keys", "is hidden in a home directory, where programs keep their own files"),
        ("/srv/shop/.git", "belongs to /srv/shop/.git, where a working copy keeps its history"),
        ("/srv/shop/.git/objects/0a", "belongs to /srv/shop/.git, where a working copy keeps its history"),
        ("/home/ann/shop/.hg/store", "belongs to /home/ann/shop/.hg, where a working copy keeps its history"),
        ("/srv/.svn/pristine", "belongs to /srv/.svn, where a working copy keeps its history"),
        ("/srv/.landing/orders", None),
        ("/root/landing", None),
        ("/var/data", None),
        ("/var/data/orders", None),
        ("/runs/orders", None),
        ("HOME/data", None),
        ("HOME/shop/landing", None),
        ("/home/ann/landing", None),
        ("/var/spool/orders", None),
        ("/srv/orders", None),
        ("/data", None),
        ("/library/orders", None),
        ("/dev/shm/orders", None),
    ],
)
def test_places_where_nobody_lands_data_are_doubted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, wrong: str | None
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert doubt(Path(path.replace("HOME", str(tmp_path))), Landing()) == wrong


def put(folder: Path, *names: str, content: bytes = b"1,2\n") -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a.csv", "run.sh"], "run.sh"),
        (["a.csv", "in/SETUP.PY"], "in/SETUP.PY"),
        (["README"], "README"),
        (["notes.md", "a.json", "app.conf", "logo.png", "x.zip"], "app.conf, logo.png, notes.md and more"),
        ([".git/HEAD", "a.csv"], ".git"),
        (["a.csv", "id_rsa", "known_hosts", "authorized_keys"], "authorized_keys, id_rsa, known_hosts"),
        (["a.csv", "crontab"], "crontab"),
        (["a.csv", "esc\x1b\n.py"], "esc\\x1b\\n.py"),
    ],
)
def test_what_is_plainly_no_data_is_told(tmp_path: Path, names: list[str], told: str) -> None:
    found = doubt(put(tmp_path / "in", *names), Landing())
    assert found == f"has contents that do not look like data: {told}"


@pytest.mark.parametrize("program", [b"#!/bin/sh\n", b"\x7fELF\x02\x01"])
def test_a_program_without_an_ending_is_no_data(tmp_path: Path, program: bytes) -> None:
    folder = put(put(tmp_path / "in", "part-00000"), "start", content=program)
    assert doubt(folder, Landing()) == "has contents that do not look like data: start"


CSV = Landing(format="csv", schema="ts timestamp, price long")
JSON = Landing(format="json", schema="ts timestamp, price long")
PARQUET = Landing(format="parquet", schema="ts timestamp, price long")
BEGINNINGS = [
    (CSV, b'\nTS,"price"\r\n1,2\n'),
    (CSV, b"\xef\xbb\xbfts,price"),
    (Landing(format="csv", schema=CSV.schema, encoding="utf-16"), "ts,price\n".encode("utf-16")),
    (
        Landing(format="csv", schema="ts timestamp, " + "x" * 5000 + " long"),
        b"ts," + b"x" * 5000 + b"\n1,2\n",
    ),
    (Landing(format="csv", schema=CSV.schema, header=False), b"1,2\n"),
    (JSON, b" \n{}"),
    (PARQUET, b"PAR1..."),
]


@pytest.mark.parametrize(("landing", "content"), BEGINNINGS)
def test_files_without_endings_that_begin_as_the_feeds_do_are_data(
    tmp_path: Path, landing: Landing, content: bytes
) -> None:
    assert doubt(put(tmp_path / "in", "part-0", content=content), landing) is None


@pytest.mark.parametrize("landing", [CSV, JSON, PARQUET])
def test_where_nothing_begins_as_data_it_is_told_and_one_that_is_damaged_among_data_is_not(
    tmp_path: Path, landing: Landing
) -> None:
    folder = put(tmp_path / "in", "config", "deep/HEAD", content=b"[core]\n\tbare = false\n")
    put(folder, "empty", content=b"")
    assert doubt(folder, landing) == "has contents that do not look like data: config, deep/HEAD"
    (content,) = (content for other, content in BEGINNINGS[1:] if other is landing)
    assert doubt(put(folder, "deep/part-0", content=content), landing) is None
    (folder / "deep/part-0").unlink()
    assert doubt(put(folder, "1.data"), landing) is None


DATA = st.from_regex(
    r"[a-zA-Z0-9][-a-zA-Z0-9_ ~+=]{0,20}(\.[0-9]{1,9})?"
    r"(|\.(csv|json|jsonl|ndjson|parquet|txt|log|data|dat|tsv)(|\.gz|\.zst))",
    fullmatch=True,
).filter(
    lambda name: (
        name.partition(".")[0].lower()
        not in ("readme", "license", "licence", "makefile", "dockerfile", "crontab", "id_rsa", "known_hosts")
    )
)


@given(st.sets(DATA, max_size=8))
def test_data_and_what_a_run_does_not_see_raise_no_doubt(
    tmp_path_factory: pytest.TempPathFactory, names: set[str]
) -> None:
    folder = tmp_path_factory.mktemp("landing")
    put(folder, *names, *(f"2026/{name}" for name in names))
    put(folder, "_SUCCESS", ".hidden.py", "_logs/run.sh", "b.csv.tmp")
    (folder / "link.py").symlink_to(__file__)
    os.mkfifo(folder / "pipe")
    assert doubt(folder, Landing()) is None


def asked(project: Path, landing: Path, *, loaded: bool = False) -> bool:
    """Whether a run would be refused."""
    found = directories(project, "w", a=landing)
    try:
        check_directories(load(project / "freshline.yml"), found, project / "landing.json", loaded=loaded)
    except DefinitionErrors as errors:
        (error,) = errors.errors
        assert error.place is not None
        assert error.place.line == 4
        assert "freshline run --yes" in error.remedy
        return True
    return False


def test_a_directory_is_doubted_once_and_another_one_again(tmp_path: Path) -> None:
    first, second = put(tmp_path / "1", "run.sh"), put(tmp_path / "2", "run.sh")
    assert asked(tmp_path, first)
    remember_directories({"a": first}, tmp_path / "landing.json")
    assert not asked(tmp_path, first)
    assert asked(tmp_path, second)
    (tmp_path / "landing.json").write_text("{")
    assert asked(tmp_path, first)


def test_a_storage_that_has_loaded_already_and_remembers_nothing_is_not_asked(tmp_path: Path) -> None:
    assert not asked(tmp_path, put(tmp_path / "in", "run.sh"), loaded=True)
    remember_directories({"b": tmp_path / "b"}, tmp_path / "landing.json")
    assert asked(tmp_path, tmp_path / "in", loaded=True)


def test_a_run_is_refused_until_it_is_told_yes_and_goes_on_without_from_then_on(
    spark, tmp_path: Path
) -> None:
    directories(tmp_path, "warehouse", a="landing")
    put(tmp_path / "landing", "run.sh")
    warehouse, storage = load(tmp_path / "freshline.yml"), tmp_path / "warehouse"
    with pytest.raises(DefinitionErrors, match=r"landing has contents that do not look like data: run.sh"):
        Runner(warehouse, tmp_path, storage, RunOptions(session=spark))
    result = CliRunner().invoke(app, ["run", "-p", str(tmp_path)])
    assert isinstance(result.exception, DefinitionErrors)
    assert not storage.exists()
    with Runner(warehouse, tmp_path, storage, RunOptions(session=spark, accept_landing=True)):
        pass
    with Runner(warehouse, tmp_path, storage, RunOptions(session=spark)):
        put(tmp_path / "landing", "more.sh")
    with Runner(warehouse, tmp_path, storage, RunOptions(session=spark)):
        pass
