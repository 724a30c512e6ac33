"""A run that is asked over HTTP, and by the commands that do so."""

import json
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import commands
from freshline.base.errors import InputError
from freshline.live.run.runner import Runner
from freshline.service.address import ServiceAddress
from freshline.service.client import ask
from freshline.storage.control.layout import StorageLayout
from live_project import in_a_thread
from place import PROJECT, Place


@contextmanager
def running(place: Place) -> Iterator[Runner]:
    """A run in a thread of its own, until the block ends."""
    (place.folder / "freshline.yml").write_text(place.project, encoding="utf-8")
    for feed in ("orders", "clicks"):
        (place.folder / "landing" / feed).mkdir(parents=True, exist_ok=True)
    with place.new_runner(drain=False) as runner, in_a_thread(runner):
        yield runner


def freshline(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.freshline(*arguments, "-p", folder)


@pytest.mark.spark
def test_a_run_can_be_asked_while_it_lasts_and_by_nobody_afterwards(tmp_path, spark):
    place = Place(tmp_path, spark)
    control = StorageLayout(tmp_path / "warehouse").control()
    with running(place):
        address = ServiceAddress.read(control.service)
        assert address is not None
        assert stat.S_IMODE(control.service.stat().st_mode) == 0o600
        status = ask(control.service, "GET", "/v1/status")
        assert [table["name"] for table in status["tables"]] == ["orders", "clicks", "sums"]
        printed = json.loads(freshline(tmp_path, "status", "--json").stdout)
        assert printed.keys() == status.keys()
    assert not control.service.exists()
    with pytest.raises(InputError, match="no warehouse runs"):
        ask(control.service, "GET", "/v1/status")
    nobody = freshline(tmp_path, "apply")
    assert nobody.returncode == 2
    assert nobody.stderr.startswith("no warehouse runs with the storage")


@pytest.mark.spark
def test_apply_names_what_differs_and_the_run_goes_on(tmp_path, spark):
    place = Place(tmp_path, spark)
    file = tmp_path / "freshline.yml"
    with running(place):
        same = freshline(tmp_path, "apply", "--json")
        assert (same.returncode, json.loads(same.stdout)) == (
            0,
            {"admitted": [], "refused": [], "removed": [], "unchanged": []},
        )
        assert freshline(tmp_path, "apply").stdout == "No query has changed.\n"
        for before, after, named in (
            ("tracks: 2", "tracks: 3", "`pools.updates.tracks` differs"),
            ("period: 500ms, cost", "period: 600ms, cost", "`tables.sums.period` differs"),
            ("path: landing/clicks", "path: landing/other", "`feeds.clicks.path` differs"),
            ("name: trouble", "name: troubles", "`name` differs"),
        ):
            file.write_text(PROJECT.replace(before, after), encoding="utf-8")
            refused = freshline(tmp_path, "apply")
            assert refused.returncode == 2, refused
            assert named in refused.stderr
        for wrong in ("", "name: [", PROJECT.replace("tracks: 2", "tracks: two")):
            file.write_text(wrong, encoding="utf-8")
            refused = freshline(tmp_path, "apply")
            assert refused.returncode == 2
            assert "freshline.yml" in refused.stderr
        file.write_text(PROJECT, encoding="utf-8")
        assert freshline(tmp_path, "apply").returncode == 0
        assert freshline(tmp_path, "status").returncode == 0
