"""How the command ends: exit codes, and what goes to standard error."""

import json
import os
import pty
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from cases import rest_in_soak
from commands import freshline
from freshline.cli import main as entry
from holding_project import HOLDS


def process(*arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a process of its own, with these environment variables."""
    return subprocess.run(
        [sys.executable, "-m", "freshline", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **settings},
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    file = tmp_path / "freshline.yml"
    file.write_text(HOLDS, encoding="utf-8")
    return file


# The same with a continuous query.
ASKED = (
    HOLDS.replace("feeds:", "  answers: {tracks: 1, policy: lrm}\nfeeds:")
    .replace("packets: {path", "packets: {rows: 100, path")
    .replace("{feed: packets,", "{feed: packets, slices: {by: src},")
    + "queries:\n"
    + "  volume: {sql: SELECT src FROM packets GROUP BY src, window: 1m, stride: 10s}\n"
)
BAD_FILES = {
    "a cycle": (
        HOLDS.replace("FROM packets", "FROM loop")
        + '  loop: {sql: "SELECT ts FROM traffic", period: 1h, cost: {startup: 1s}}\n',
        "cycle",
    ),
    "an unknown source": (HOLDS.replace("FROM packets", "FROM packet"), "packet"),
    "SQL that does not parse": (HOLDS.replace("SELECT ts, src", "SELEC ts, src FROM"), "SQL"),
    "a period of zero": (HOLDS.replace("period: 15 minutes", "period: 0s"), "period"),
    "two definitions of one name": (HOLDS + "  traffic: {feed: packets}\n", "traffic"),
    "an unknown key": (HOLDS.replace("target_lag: 1 hour", "target_lagg: 1 hour"), "target_lagg"),
    "a useless key": (HOLDS.replace("{feed: packets,", "{feed: packets, phase: 1 minute,"), "phase"),
    "a query outside the operators": (ASKED.replace("GROUP BY", "ORDER BY"), "ORDER BY"),
    "a deadline beyond the stride": (ASKED.replace("stride: 10s", "stride: 10s, deadline: 11s"), "deadline"),
    "a weight of zero": (ASKED.replace("stride: 10s", "stride: 10s, weight: 0"), "weight"),
    "a table in a pool of queries": (
        ASKED.replace("{feed: packets,", "{feed: packets, pool: answers,"),
        "pool",
    ),
    "a query in a pool of tables": (ASKED.replace("stride: 10s", "stride: 10s, pool: updates"), "pool"),
    "a query of unknown cost": (ASKED.replace("rows: 100, ", ""), "rows"),
}


def test_the_file_with_a_query_is_right(project):
    project.write_text(ASKED, encoding="utf-8")
    assert process("plan", "-p", project).returncode == 0


@pytest.mark.parametrize("arguments", rest_in_soak([["plan", "-p", "freshline.yml"], ["fly"]]))
def test_in_a_process_of_its_own_the_command_ends_the_same(arguments, project, monkeypatch):
    monkeypatch.chdir(project.parent)
    project.write_text(BAD_FILES["a cycle"][0], encoding="utf-8")
    apart, here = process(*arguments), freshline(*arguments)
    assert apart.returncode == here.returncode == 2
    assert apart.stdout == here.stdout == ""
    assert apart.stderr.splitlines()[-1] == here.stderr.splitlines()[-1]  # above are the program's names


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_input_gets_a_sentence_with_file_and_line_and_exit_code_2(case, project):
    text, word = BAD_FILES[case]
    project.write_text(text, encoding="utf-8")
    done = freshline("plan", "-p", project)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    first = done.stderr.splitlines()[0]
    assert first.startswith(f"{project}:")
    assert first.removeprefix(f"{project}:").split(":")[0].isdecimal()
    assert word in first


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "-p", "nowhere.yml"),
        ("simulate", "--policy", "best"),
        ("simulate", "--policy", "lrm"),
        ("simulate", "--tracks", "0"),
        ("simulate", "--tracks", "nobody=3"),
        ("simulate", "--tracks", "1000001"),
        ("simulate", "--tracks", "9" * 5_000),
        ("simulate", "--tracks", "1", "--tracks", "updates=2"),
        ("simulate", "--for", "8"),
        ("simulate", "--for", "0s"),
        ("analyze", "nowhere.json"),
        ("fly",),
    ],
)
def test_bad_arguments_are_bad_input(arguments, project, monkeypatch):
    monkeypatch.chdir(project.parent)
    done = freshline(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


def test_names_that_the_output_cannot_encode_are_escaped(project, tmp_path):
    file = tmp_path / "tasks.json"
    names = ["[/x]", "\ud800"]
    tasks = [{"name": name, "cost": 1, "period": 9} for name in names]
    file.write_text(json.dumps({"tracks": 1, "tasks": tasks}), encoding="utf-8")
    done = process("analyze", file, PYTHONIOENCODING="utf-8")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[-2:]] == ["[/x]", "\\ud800"]
    done = process("plan", "-p", project, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert "staleness \\u2264" in done.stdout


@pytest.mark.parametrize("arguments", rest_in_soak([["plan"], ["plan", "--json"], ["schema"]]))
def test_output_that_cannot_be_written_is_told_from_a_verdict(arguments, project):
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "freshline", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=project.parent,
        )
    assert done.returncode == 74
    assert done.stderr == "The system refused: the disk is full.\n"


def test_a_full_disk_is_no_bug_whoever_reports_it(monkeypatch, capsys):
    def full() -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(entry, "app", full)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 74
    assert capsys.readouterr().err == "The system refused: the disk is full.\n"


@pytest.mark.parametrize("debug", [False, True])
def test_an_unexpected_exception_is_one_line_and_exit_code_70(debug, monkeypatch, capsys):
    def broken() -> None:
        raise KeyError("a key\nthat is not there")

    monkeypatch.setattr(entry, "app", broken)
    monkeypatch.setenv("FRESHLINE_DEBUG", "1" if debug else "")
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == 70
    *traceback, line = capsys.readouterr().err.splitlines()
    sentence = "This is a bug of Freshline, please report it: KeyError: 'a key\\nthat is not there'"
    assert line == sentence
    assert bool(traceback) == debug


def test_reading_a_file_is_shown_to_those_who_look(project):
    mine, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "freshline", "plan", "-p", str(project), "--json"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        check=False,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = os.read(mine, 10_000)
    os.close(mine)
    assert done.returncode == 0
    assert json.loads(done.stdout)["holds"] is True
    assert b"reading" in shown
