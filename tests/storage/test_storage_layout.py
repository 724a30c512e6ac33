"""Where things are in a storage."""

from pathlib import Path

import pytest

from freshline.definitions.errors import InputError
from freshline.storage.layout import Layout


def test_everything_has_its_place(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "wh")
    layout.prepare()
    layout.prepare()
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
    control = tmp_path / "wh/_freshline"
    assert (layout.control, layout.status, layout.ledger, layout.history) == (
        control,
        control / "status.json",
        control / "ledger.sqlite",
        control / "history.sqlite",
    )


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/x", "", ".", "a\0b"])
def test_a_table_cannot_leave_the_storage(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="leads out of"):
        Layout(tmp_path).table(name)


def test_a_storage_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match=r"the storage .*taken cannot be written: Not a directory"):
        Layout(tmp_path / "taken").prepare()
