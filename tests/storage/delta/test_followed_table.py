"""Tables that are followed by their logs while others write them."""

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.storage.delta import log
from freshline.storage.delta.followed_table import FollowedTable
from freshline.storage.delta.snapshot import Snapshot, read_snapshot
from patience import PATIENCE_S
from stored_tables import SCHEMA, instants, opened, rows, update


def followed(path: Path) -> FollowedTable:
    return FollowedTable(path, "ts", SCHEMA)


def as_it_is(path: Path) -> Snapshot:
    return read_snapshot(path, "ts", DeltaTable(path))


def same(one: Snapshot, other: Snapshot) -> bool:
    """Files are in another order where they came one by one."""
    return (one.version, one.versions, {*one.files}) == (other.version, other.versions, {*other.files})


def test_a_table_that_is_not_there_yet_has_nothing(tmp_path: Path) -> None:
    table = followed(tmp_path / "t")
    assert not table.look()
    assert not table.reload()
    assert (table.freshness, table.files, table.version) == (None, (), -1)
    update(opened(tmp_path / "t"), 7)
    assert table.look()
    assert (table.freshness, [file.rows for file in table.files_with(None, 7)]) == (7, [1])


def test_a_commit_without_rows_moves_the_freshness(tmp_path: Path) -> None:
    stored, table = opened(tmp_path / "t"), followed(tmp_path / "t")
    update(stored, 7)
    assert table.reload()
    before_ms = time.time_ns() // 1_000_000
    stored.commit(None, 9, (), {"came_at": 4})
    after_ms = time.time_ns() // 1_000_000
    assert table.look()
    assert (table.freshness, len(table.files), table.came_at) == (9, 1, 4)
    assert table.committed_at is not None
    assert before_ms <= table.committed_at // 1_000 <= after_ms
    assert not table.look()


def test_a_log_that_was_cleaned_beyond_what_is_known_is_read_anew(tmp_path: Path) -> None:
    stored, table = opened(tmp_path / "t"), followed(tmp_path / "t")
    update(stored, 1)
    assert table.look()
    for number in range(2, 8):
        update(stored, number)
        stored.checkpoint()
    stored.clean_log(stored.version)
    assert not log.commit_path(stored.path, 2).exists()
    assert not table.look()
    assert table.reload()
    assert same(table.snapshot, as_it_is(stored.path))


def test_a_table_that_was_made_again_is_another_one(tmp_path: Path) -> None:
    update(opened(tmp_path / "t"), 3)
    table = followed(tmp_path / "t")
    table.reload()
    (tmp_path / "t").rename(tmp_path / "old")
    update(opened(tmp_path / "t"), 2)
    assert table.reload()
    assert (table.freshness, instants(tmp_path / "t")) == (2, [2])


STEPS = ("update", "empty", "compact", "checkpoint", "clean", "foreign", "look", "reload")


@settings(max_examples=15)
@given(st.lists(st.sampled_from(STEPS), min_size=3, max_size=10))
def test_whatever_is_done_to_a_table_its_follower_knows_it(tmp_path_factory, steps: list[str]) -> None:
    path = tmp_path_factory.mktemp("followed") / "t"
    stored, table = opened(path), followed(path)
    for number, step in enumerate(steps, start=1):
        if step == "update":
            update(stored, number)
        elif step == "empty":
            stored.commit(None, number, (), {})
        elif step == "compact":
            stored.compact(1 << 20, 1 << 20)
        elif step == "checkpoint":
            stored.checkpoint()
        elif step == "clean":
            stored.clean_log(stored.version)
        elif step == "foreign":  # another tool's append, with statistics of its own
            write_deltalake(path, pa.table(rows([number])), mode="append")
        else:
            getattr(table, step)()
    table.look()
    table.reload()
    assert same(table.snapshot, as_it_is(path))


def test_a_follower_keeps_up_with_a_writer_of_another_process(tmp_path: Path) -> None:
    count = 20
    program = Path(__file__).parents[2] / "helpers" / "loader_process.py"
    writer = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path), str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    looks = 0
    table = followed(tmp_path / "t")
    seen, until = [0], time.monotonic() + PATIENCE_S
    try:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.close()
        while seen[-1] < count and time.monotonic() < until:
            looks += 1
            if table.look() or (looks % 100 == 0 and table.reload()):
                seen.append(table.freshness or 0)
                assert sum(file.rows for file in table.files) == seen[-1]
        assert writer.wait(PATIENCE_S) == 0
    finally:
        writer.kill()
        writer.wait()
    assert seen == sorted(seen)
    table.look()
    table.reload()
    assert same(table.snapshot, as_it_is(tmp_path / "t"))
