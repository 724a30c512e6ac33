"""Where things are in a storage."""

from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.storage.control.layout import StorageLayout


def test_everything_has_its_place(tmp_path: Path) -> None:
    layout = StorageLayout(tmp_path / "wh")
    layout.prepare(layout.control())
    layout.prepare(layout.control())
    made = sorted(path.relative_to(tmp_path / "wh").as_posix() for path in (tmp_path / "wh").rglob("*"))
    assert made == [
        "_freshline",
        "_freshline/archive",
        "_freshline/lease",
        "_freshline/logs",
        "_freshline/quarantine",
        "tables",
    ]
    assert layout.table("flows") == tmp_path / "wh/tables/flows"
    assert layout.root == tmp_path / "wh"
    folder, control = tmp_path / "wh/_freshline", layout.control()
    assert (control.folder, control.status, control.ledger, control.history) == (
        folder,
        folder / "status.json",
        folder / "ledger.sqlite",
        folder / "history.sqlite",
    )


def test_each_node_has_a_folder_of_its_own(tmp_path: Path) -> None:
    layout = StorageLayout(tmp_path / "wh")
    edge = layout.control("edge")
    layout.prepare(edge)
    assert edge.lease == tmp_path / "wh/_freshline/nodes/edge/lease"
    assert edge.lease.is_dir()
    assert not layout.control().lease.exists()
    assert [control.folder for control in layout.controls(["edge", "centre"])] == [
        tmp_path / "wh/_freshline/nodes/edge",
        tmp_path / "wh/_freshline/nodes/centre",
    ]
    assert [control.folder for control in layout.controls([])] == [tmp_path / "wh/_freshline"]


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", ".", "a\0b"])
def test_a_table_cannot_leave_the_storage(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="leads out of"):
        StorageLayout(tmp_path).table(name)


def test_a_storage_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    layout = StorageLayout(tmp_path / "taken")
    with pytest.raises(InputError, match=r"the storage .*taken cannot be written: Not a directory"):
        layout.prepare(layout.control())
