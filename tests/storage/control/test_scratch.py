"""Folders of processes: they go with them, or with the next run."""

import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from freshline.base.processes import process_start
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.lease import Identity
from freshline.storage.control.scratch import clear_scratch, scratch_folder

DAY_S = 86_400
MINE = Identity.mine("mine")


@pytest.fixture(scope="module")
def dead() -> Identity:
    """A process of this host that has ended."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = process_start(process.pid)
    assert started is not None
    process.communicate(b"\n")
    return replace(MINE, pid=process.pid, started=started)


def leave(scratch: Path, identity: Identity, name: str, *, has_lease: bool, age_s: int = 0) -> None:
    """As a process does that is killed."""
    (scratch / name / "deep").mkdir(parents=True)
    owner = scratch / f"{name}.json"
    owner.write_text(json.dumps({"identity": asdict(replace(identity, run=name)), "has_lease": has_lease}))
    os.utime(owner, (owner.stat().st_mtime - age_s,) * 2)


def test_a_folder_is_there_as_long_as_it_is_needed(tmp_path: Path) -> None:
    with scratch_folder(tmp_path / "scratch", MINE, has_lease=True) as folder:
        (folder / "file").touch()
        clear_scratch(tmp_path / "scratch", MINE)
        assert (folder / "file").exists()
    assert not list((tmp_path / "scratch").iterdir())


def test_what_the_dead_left_is_cleared_and_what_others_use_is_not(tmp_path: Path, dead: Identity) -> None:
    elsewhere = replace(MINE, host="elsewhere")
    leave(tmp_path, dead, "dead", has_lease=False)
    # The former holder of the lease is dead or has lost it: it is ours now.
    leave(tmp_path, elsewhere, "held", has_lease=True)
    leave(tmp_path, MINE, "alive", has_lease=False)
    leave(tmp_path, elsewhere, "unknown", has_lease=False)
    leave(tmp_path, elsewhere, "old", has_lease=False, age_s=DAY_S + 60)
    (tmp_path / "begun.json").write_text('{"identity"')
    clear_scratch(tmp_path, MINE)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "alive",
        "alive.json",
        "begun.json",
        "unknown",
        "unknown.json",
    ]


def test_drafts_of_the_dead_are_cleared_and_nothing_else(tmp_path: Path) -> None:
    layout = StorageLayout(tmp_path)
    control = layout.control()
    layout.prepare(control)
    drafts = [
        control.folder / ".status.json.draft",
        control.lease / ".0f0f",
        control.folder / ".landing.json.draft",
        layout.quarantine / "reasons/packets/.a.csv.json.draft",
        layout.quarantine / "files/packets/.a.csv.tmp",
    ]
    others = [
        control.status,
        control.lease / "000000001.json",
        control.lease / ".somebody-writes-now",
        layout.quarantine / "reasons/packets/b.csv.json",
        layout.quarantine / "files/packets/b.tmp.csv",
    ]
    for path in [*drafts, *others]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    os.utime(drafts[1], (drafts[1].stat().st_mtime - 3600,) * 2)
    control.clear(MINE)
    layout.clear(["packets"])
    assert [path for path in [*drafts, *others] if path.exists()] == others
