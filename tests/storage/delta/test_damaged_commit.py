"""A newest commit that was cut short is named, with a remedy."""

from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.storage.delta import log
from freshline.storage.delta.stored_table import StoredTable
from stored_tables import instants, opened, update


@pytest.mark.parametrize("share", [0, 0.3, 0.7, 0.99])
def test_a_newest_commit_that_is_cut_short_is_named_and_can_be_deleted(tmp_path: Path, share: float) -> None:
    path = tmp_path / "t"
    table = opened(path)
    update(table, 1)
    update(table, 2)
    commit = log.commit_path(path, 2)
    text = commit.read_bytes()
    commit.unlink()  # not in place: the writer's own window has a link to it
    commit.write_bytes(text[: int(len(text) * share)])
    for user in (opened, lambda path: StoredTable.open(path, "ts")):  # a runner, and a reader
        with pytest.raises(InputError) as raised:
            user(path)
        assert raised.value.what == f"the newest commit of table t is damaged: {commit} is not whole"
        assert "delete it" in raised.value.remedy
    commit.unlink()
    again = opened(path)
    assert (again.version, instants(path)) == (1, [1])
