"""Readers that come late: whatever is younger than the table's history they can read, version by version."""

import json
import os
import re
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import DAY, HOUR, SECOND
from freshline.storage.delta import log
from stored_tables import instants, job, opened, update

SMALL, TARGET = 1 << 20, 8 << 20
PERIOD_S = 30


def rows_of(path: Path, version: int) -> list[int]:
    """The rows that a reader with time travel sees."""
    column = DeltaTable(path, version=version).to_pyarrow_table(columns=["ts"])["ts"]
    return sorted(column.cast(pa.int64()).to_pylist())


def rows_added(path: Path, version: int) -> list[int]:
    """As a streaming reader gets them: the rows of the files that this version brought."""
    actions = [json.loads(line) for line in log.commit_path(path, version).read_text().splitlines()]
    added = [action["add"]["path"] for action in actions if action.get("add", {}).get("dataChange")]
    columns = [pq.read_table(path / file, partitioning=None)["ts"].cast(pa.int64()) for file in added]
    return sorted(instant for column in columns for instant in column.to_pylist())


class Ageing:
    """A table, and what each of its versions had when it was made, and when that was."""

    def __init__(self, path: Path, history_us: int) -> None:
        self.path = path
        self.table = opened(path, history_us=history_us)
        self.then: dict[int, list[int]] = {0: []}
        self.made_s: dict[int, float] = {0: 0}
        self.now_s: float = 0
        self.number = 0

    def update(self) -> None:
        self.number += 1
        update(self.table, self.number)
        self.note()

    def compact(self) -> None:
        self.table.compact(SMALL, TARGET)
        self.note()

    def rebuild(self) -> None:
        self.number += 1
        folder = job(self.table, f"rebuilt-{self.number}", [self.number])
        self.table.commit(folder, self.number, [], {}, replacing=self.table.schema)
        self.note()

    def clean(self) -> None:
        self.table.clean_log(self.table.version)

    def vacuum(self) -> None:
        self.table.vacuum(timedelta(0))

    def reopen(self) -> None:
        self.table = opened(self.path, history_us=self.table.history_us)

    def note(self) -> None:
        self.then[self.table.version] = instants(self.path)
        self.made_s.setdefault(self.table.version, self.now_s)

    def pass_time(self, seconds: float) -> None:
        """Makes everything as old as if so much time had passed."""
        self.now_s += seconds
        for path in [*self.path.glob("_delta_log/*.json"), *self.path.glob("data/*/*")]:
            then_s = path.stat().st_mtime - seconds
            if path.suffix == ".json":
                path.write_text(re.sub(r'(?<="deletionTimestamp":)\d+', _less(seconds), path.read_text()))
            os.utime(path, (then_s, then_s))

    def since(self, ago_s: float) -> list[int]:
        """The versions that were made within so much time, oldest first."""
        return [version for version, made_s in self.made_s.items() if self.now_s - made_s <= ago_s]


def _less(seconds: float) -> Callable[[re.Match[str]], str]:
    return lambda found: str(int(found[0]) - int(seconds * 1_000))


@pytest.mark.soak
def test_a_reader_that_falls_behind_by_an_hour_reads_every_version_while_the_table_goes_on(
    tmp_path: Path,
) -> None:
    ageing = Ageing(tmp_path / "t", HOUR * 3 // 2)  # half an hour is more than this test takes
    for number in range(1, 3 * 3_600 // PERIOD_S + 1):
        ageing.update()
        if number % 12 == 0:
            ageing.compact()
        if number % 20 == 0:
            ageing.pass_time(20 * PERIOD_S)
    newest, behind = ageing.table.version, ageing.since(3_600)[0]
    assert newest - behind >= 3_600 // PERIOD_S, "an hour's worth"
    seen = ageing.then[behind - 1]
    for version in range(behind, newest + 1):
        assert rows_of(ageing.path, version) == ageing.then[version]
        seen = sorted(seen + rows_added(ageing.path, version))
        assert seen == ageing.then[version]
        if version % 10 == 0:
            ageing.update()
            ageing.compact()
            ageing.table.checkpoint()
            ageing.clean()
            ageing.vacuum()
    assert log.commits(ageing.path).start > 100, "what is beyond the promised history is gone"
    assert not (ageing.path / "data/000001").exists()
    fifty_minutes_ago = ageing.since(3_000)[0]
    assert rows_of(ageing.path, fifty_minutes_ago) == ageing.then[fifty_minutes_ago]


ACTIONS = st.sampled_from(
    ["update"] * 5 + ["checkpoint"] * 3 + ["compact", "rebuild", "clean", "vacuum", "reopen"]
)


@sampled(25)
@given(st.lists(st.tuples(ACTIONS, st.sampled_from([0, 0, 0, 600, 1_500])), min_size=10, max_size=50))
def test_whatever_is_done_to_a_table_every_version_of_its_history_can_be_read(
    steps: list[tuple[str, int]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ageing = Ageing(Path(folder) / "t", HOUR)
        for action, seconds in steps:
            if action == "checkpoint":
                ageing.table.checkpoint()
            else:
                getattr(ageing, action)()
            if seconds:
                ageing.pass_time(seconds)
        ageing.clean()
        ageing.vacuum()
        for version in ageing.since(3_500):
            assert rows_of(ageing.path, version) == ageing.then[version]
        assert instants(ageing.path) == ageing.then[ageing.table.version]


def test_other_tools_are_told_the_history_and_a_change_of_it_is_no_update(tmp_path: Path) -> None:
    table = opened(tmp_path / "t", history_us=2 * HOUR)
    update(table, 1)
    configuration = DeltaTable(tmp_path / "t").metadata().configuration
    assert configuration["delta.logRetentionDuration"] == "interval 7200 seconds"
    assert configuration["delta.deletedFileRetentionDuration"] == "interval 7200 seconds"
    assert opened(tmp_path / "t", history_us=2 * HOUR).version == 1
    again = opened(tmp_path / "t", history_us=DAY)
    assert (again.version, again.sequence, again.freshness, again.files) == (2, 1, 1, table.files)
    configuration = DeltaTable(tmp_path / "t").metadata().configuration
    assert configuration["delta.logRetentionDuration"] == "interval 86400 seconds"
    update(again, 2)
    assert next(again.consumed_since(1)) == (2, [])
    assert instants(tmp_path / "t") == [1, 2]
    assert DeltaTable(tmp_path / "t").version() == 3


def test_other_tools_keep_replaced_files_for_an_hour_even_with_a_shorter_history(tmp_path: Path) -> None:
    opened(tmp_path / "t", history_us=60 * SECOND)
    configuration = DeltaTable(tmp_path / "t").metadata().configuration
    assert configuration["delta.logRetentionDuration"] == "interval 60 seconds"
    assert configuration["delta.deletedFileRetentionDuration"] == "interval 3600 seconds"


def test_a_table_of_an_older_version_gets_its_history_when_it_is_opened(tmp_path: Path) -> None:
    DeltaTable.create(
        tmp_path / "t",
        opened(tmp_path / "other").schema,
        configuration={
            "delta.enableExpiredLogCleanup": "false",
            "delta.deletedFileRetentionDuration": "interval 1 hour",
        },
    )
    table = opened(tmp_path / "t", history_us=DAY)
    update(table, 1)
    assert instants(tmp_path / "t") == [1]
    assert DeltaTable(tmp_path / "t").metadata().configuration["delta.logRetentionDuration"] == (
        "interval 86400 seconds"
    )


def tombstones(path: Path, version: int) -> int:
    content = pq.read_table(log.checkpoint_path(path, version))
    return content.num_rows - content["remove"].null_count


def test_checkpoints_carry_no_replaced_files_whose_own_time_says_when_that_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t", history_us=DAY)
    for number in range(1, 11):
        update(table, number)
    replaced = [tmp_path / "t" / file.path for file in table.files]
    for path in replaced:
        os.utime(path, (1_000, 1_000))
    DeltaTable(tmp_path / "t").optimize.compact()  # another writer's touches nothing
    table = opened(tmp_path / "t", history_us=DAY)

    def refuse(*arguments: object, **named: object) -> None:
        raise PermissionError("not ours")

    with monkeypatch.context() as patched:
        patched.setattr("freshline.storage.delta.checkpoint.os.utime", refuse)
        table.checkpoint()
    assert tombstones(tmp_path / "t", table.version) == 10, "what cannot be noted there stays in the log"
    update(table, 11)
    table.checkpoint()
    assert tombstones(tmp_path / "t", table.version) == 0
    assert all(time.time() - path.stat().st_mtime < 3_600 for path in replaced)
    assert table.vacuum(timedelta(0)) == 0
    assert instants(tmp_path / "t") == list(range(1, 12))


def test_of_a_long_log_some_checkpoints_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freshline.storage.delta.stored_table.COMMITS_BETWEEN_CHECKPOINTS", 60)
    table = opened(tmp_path / "t", history_us=DAY)
    for number in range(1, 201):
        update(table, number)
    table.clean_log(table.version)
    assert log.checkpoints(tmp_path / "t") == [25, 100, 175, 200]
    assert log.commits(tmp_path / "t") == range(201)
    assert rows_of(tmp_path / "t", 99) == list(range(1, 100))
