"""`run --accept-change` and `migrate`, as their users see them."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from commands import freshline
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.definitions.load import load
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from patience import PATIENCE

PROJECT = """\
name: small
pools: {updates: {tracks: 1}}
feeds:
  packets: {path: landing, format: csv, schema: "ts timestamp, bytes long", timestamp: ts, period: 1s}
tables:
  packets: {feed: packets, cost: {startup: 1ms}}
  all: {sql: "SELECT * FROM packets", period: 1s, cost: {startup: 1ms}}
  traffic: {sql: "SELECT ts, bytes * 8 AS bits FROM packets", period: 1s, cost: {startup: 1ms}}
"""
RUN = ("run", "--drain", "--for", PATIENCE, "--cold")


class Project:
    """A project in a folder, on which commands are run, on the Spark that the tests share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "landing").mkdir()
        (folder / "landing" / "1.csv").write_text("ts,bytes\n2026-01-01T00:00:00Z,1\n", encoding="utf-8")
        self.define()

    def define(self, *edits: tuple[str, str]) -> None:
        text = PROJECT
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (self.folder / "freshline.yml").write_text(text, encoding="utf-8")

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "-p", str(self.folder)])


@pytest.fixture
def project(spark, tmp_path, monkeypatch) -> Project:
    monkeypatch.setattr(SparkSession, "stop", lambda session: None)
    monkeypatch.setattr("freshline.cli.run.signal.signal", lambda *arguments: None)
    project = Project(tmp_path)
    result = project(*RUN, "--json")
    assert json.loads(result.stdout)["said"] == []
    return project


def test_a_change_is_refused_accepted_and_then_gone(project):
    project.define(("bytes * 8", "bytes * 10"))
    refused = project(*RUN)
    assert isinstance(refused.exception, InputError)
    assert str(refused.exception).startswith(
        f"{project.folder / 'freshline.yml'}:8: table traffic has changed"
    )
    accepted = project(*RUN, "--json", "--accept-change", "traffic", "--accept-change", "all")
    assert accepted.exit_code == 0
    said = json.loads(accepted.stdout)["said"]
    assert len(said) == 2
    assert all(f"{sentence}.\n" in accepted.stderr for sentence in said)
    again = project(*RUN, "--json")
    assert (again.exit_code, again.stderr) == (0, "")


def test_an_unknown_table_is_bad_input_at_once(tmp_path):
    Project(tmp_path)
    ended = freshline("run", "-p", tmp_path, "--accept-change", "nobody")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith(
        "--accept-change nobody: there is no table nobody. The tables are packets,"
    )
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize(
    ("command", "table", "what"),
    [
        ("rebuild", "nobody", "there is no table nobody"),
        ("rebuild", "packets", "packets is a base table"),
        ("rebuild", "traffic", "nothing was ever loaded into traffic"),
        ("migrate", "nobody", "there is no table nobody"),
        ("migrate", "traffic", "traffic is a derived table"),
        ("migrate", "packets", "there are no rows of packets yet"),
    ],
)
def test_what_cannot_be_made_anew_is_said_before_spark_starts_and_makes_no_storage(
    tmp_path, command, table, what
):
    result = Project(tmp_path)(command, table)
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(what)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["freshline.yml", "landing"]


def test_migrate_tells_what_it_added_and_what_is_to_be_rebuilt(project):
    project.define(("bytes long", "bytes long, src string"))
    assert "'freshline migrate packets'" in str(project(*RUN).exception)
    first = project("migrate", "packets")
    assert first.stdout.splitlines() == [
        "Added to packets: src. In existing rows it is null.",
        "These have other columns now, as by SELECT *: rebuild all.",
    ]
    again = project("migrate", "packets", "--json")
    assert json.loads(again.stdout) == {
        "table": "packets",
        "added": [],
        "changed": [],
        "to_rebuild": ["all"],
        "dealt": False,
    }
    assert "packets has every column that is defined." in project("migrate", "packets").stdout
    assert project("rebuild", "all").exit_code == 0
    assert project(*RUN).exit_code == 0


def test_nothing_is_migrated_while_somebody_runs_the_warehouse(project, spark):
    warehouse = load(project.folder / "freshline.yml")
    project.define(("bytes long", "bytes long, src string"))
    with Runner(warehouse, project.folder, project.folder / "warehouse", RunOptions(session=spark)):
        assert isinstance(project("migrate", "packets").exception, InputError)
    assert project("migrate", "packets").exit_code == 0
