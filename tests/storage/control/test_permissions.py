"""A new storage is its owner's alone; one that is shared stays so."""

import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.permissions import modes_of

ACL = "system.posix_acl_default"


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def made_in(storage: Path) -> tuple[int, int]:
    """The modes of what a process makes in a storage: a folder's, and a file's."""
    folder, file = storage / "folder", storage / "folder" / "file"
    with modes_of(storage):
        folder.mkdir()
        file.touch()
    return mode(folder), mode(file)


def test_a_new_storage_is_its_owners_alone(tmp_path: Path) -> None:
    layout = StorageLayout(tmp_path / "above" / "storage")
    layout.prepare(layout.control())
    assert mode(tmp_path / "above") == 0o755
    assert {mode(path) for path in [layout.root, *layout.root.rglob("*")]} == {0o700}
    assert made_in(layout.root) == (0o700, 0o600)
    (tmp_path / "outside").touch()
    assert mode(tmp_path / "outside") == 0o644


def test_a_storage_that_is_there_keeps_its_modes(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    storage.mkdir()
    StorageLayout(storage).prepare(StorageLayout(storage).control())
    assert {mode(path) for path in [storage, *storage.rglob("*")]} == {0o755}
    assert made_in(storage) == (0o755, 0o644)


def test_a_storage_that_is_opened_to_others_is_so_from_then_on(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    StorageLayout(storage).prepare(StorageLayout(storage).control())
    storage.chmod(0o750)
    assert made_in(storage) == (0o755, 0o644)


def test_below_a_folder_that_hands_its_group_on_a_storage_is_shared(tmp_path: Path) -> None:
    tmp_path.chmod(0o2775)
    os.umask(0o002)
    layout = StorageLayout(tmp_path / "storage")
    layout.prepare(layout.control())
    assert mode(tmp_path / "storage") == 0o2775
    assert made_in(tmp_path / "storage") == (0o2775, 0o664)


def test_a_cluster_whose_executors_may_be_others_gets_a_storage_as_the_umask_says(tmp_path: Path) -> None:
    layout = StorageLayout(tmp_path / "storage")
    layout.prepare(layout.control(), private=False)
    assert mode(tmp_path / "storage") == 0o755


def test_below_a_folder_with_a_default_acl_a_storage_is_as_that_says(tmp_path: Path) -> None:
    # The owner: all. The group: nothing. Group 4711, and so the mask: all. Others: nothing.
    entries = [(0x01, 7, 0xFFFFFFFF), (0x04, 0, 0xFFFFFFFF), (0x08, 7, 4711), (0x10, 7, 0xFFFFFFFF)]
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(tmp_path, ACL, acl + struct.pack("<HHI", 0x20, 0, 0xFFFFFFFF))
    except OSError as error:
        pytest.skip(f"no ACLs here: {error}")
    storage = tmp_path / "storage"
    StorageLayout(storage).prepare(StorageLayout(storage).control())
    # With an ACL the mask stands where the group's rights would.
    assert mode(storage) == 0o770
    assert made_in(storage) == (0o770, 0o660)
    with modes_of(storage):
        umask = os.umask(0)
        os.umask(umask)
    assert umask == 0o007  # which Spark is told: it sets modes itself
    assert os.umask(0o022) == 0o022
