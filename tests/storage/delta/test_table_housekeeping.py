"""Compaction, checkpoints, a short log, and what vacuum takes away."""

import os
import time
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from freshline.base.errors import InputError
from freshline.storage.delta import stored_table as delta
from freshline.storage.delta.compaction import choose
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.statistics import UnreadableParquet
from freshline.storage.delta.stored_table import StoredTable
from stored_tables import instants, job, opened, rows, update

SMALL, TARGET = 1 << 20, 8 << 20
TS = pa.timestamp("us", "UTC")


def consumed(table: StoredTable, after: int = -1) -> list[tuple[int, list[str]]]:
    return [(version, [file.name for file in files]) for version, files in table.consumed_since(after)]


def versions(table: StoredTable, ending: str) -> list[int]:
    names = os.listdir(table.path / "_delta_log")
    return sorted(int(name[:20]) for name in names if name.endswith(ending) and name[:20].isdigit())


def age(path: Path, hours: float) -> None:
    then = time.time() - hours * 3600
    os.utime(path, (then, then))


def test_compaction_keeps_rows_freshness_and_sequence(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    held = table.files
    assert table.compact(SMALL, TARGET) == 10
    (merged,) = table.files
    assert (merged.rows, merged.oldest, merged.newest) == (10, 1, 10)
    assert (table.version, table.sequence, table.freshness) == (11, 10, 10)
    assert StoredTable.open(tmp_path / "t", "ts").files == table.files
    assert instants(tmp_path / "t") == list(range(1, 11))
    assert len(held) == 10
    assert all((tmp_path / "t" / file.path).exists() for file in held), "readers may still want them"
    assert update(table, 11) == 12
    assert consumed(table, 9) == [(10, ["10.csv"]), (11, []), (12, ["11.csv"])]


def test_few_files_are_not_worth_a_compaction(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 8):
        update(table, number)
    assert table.compact(SMALL, TARGET) == 0
    update(table, 8)
    assert table.compact(100, TARGET) == 0, "none is small"
    assert table.compact(SMALL, TARGET) == 8
    assert table.compact(SMALL, TARGET) == 0


def test_files_of_like_size_are_merged_oldest_first_up_to_the_target() -> None:
    little = [LiveFile(f"l{n}", 1, 100, 1_000 - n, 1_000 - n) for n in range(30)]
    large = [LiveFile(f"b{n}", 1, 10_000, n, n) for n in range(10)]
    assert choose([*large, *little], 20_000, 1_000) == little[:-11:-1]
    assert choose([*large, *little[:5]], 20_000, 1_000_000) == large
    assert choose([*large, *little[:5]], 10_000, 1_000_000) == []


def test_updates_may_be_committed_while_files_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    merge = delta.compaction.merge

    def merge_slowly(*arguments) -> None:  # type: ignore[no-untyped-def]
        merge(*arguments)
        update(table, 11)

    monkeypatch.setattr(delta.compaction, "merge", merge_slowly)
    assert table.compact(SMALL, TARGET) == 10
    assert instants(tmp_path / "t") == list(range(1, 12))
    assert set(StoredTable.open(tmp_path / "t", "ts").files) == set(table.files)


def test_files_that_a_rebuild_replaced_meanwhile_stay_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    merge = delta.compaction.merge

    def merge_slowly(*arguments) -> None:  # type: ignore[no-untyped-def]
        merge(*arguments)
        table.commit(job(table, "new", [20]), 20, [], {}, replacing=table.schema)

    monkeypatch.setattr(delta.compaction, "merge", merge_slowly)
    assert table.compact(SMALL, TARGET) == 0
    assert instants(tmp_path / "t") == [20]


def test_a_compaction_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    pq.write_table(rows([3, 3]), tmp_path / "t/data/000003/part-0.parquet")
    with pytest.raises(UnreadableParquet, match="other rows than their statistics say"):
        table.compact(SMALL, TARGET)
    (tmp_path / "t/data/000003/part-0.parquet").write_bytes(b"damaged")
    with pytest.raises(pa.ArrowInvalid):
        table.compact(SMALL, TARGET)
    assert (table.version, len(table.files)) == (10, 10)
    assert not list((tmp_path / "t/data").glob("compact-*"))


def test_nan_is_not_lost_from_filters_by_compaction(tmp_path: Path) -> None:
    schema = pa.schema([("ts", TS), ("real", pa.float64())])
    table = opened(tmp_path / "t", schema)
    for number in range(8):
        folder = tmp_path / f"t/data/{number}"
        folder.mkdir(parents=True)
        content = pa.table({"ts": pa.array([number], TS), "real": [float("nan") if number else 1.0]})
        pq.write_table(content, folder / "part.parquet", write_statistics=["ts"])
        table.commit(f"data/{number}", number, [], {})
    table.compact(SMALL, TARGET)
    (add,) = pa.table(DeltaTable(tmp_path / "t").get_add_actions(flatten=True)).to_pylist()
    assert (add["min.ts"] is None, add["min.real"], add["max.real"]) == (False, None, None)


def test_a_table_that_is_never_idle_has_a_checkpoint_every_25_commits(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 131):
        update(table, number)
    assert versions(table, ".checkpoint.parquet") == [25, 50, 75, 100, 125]
    assert versions(table, ".json") == list(range(131)), "to clean it is the housekeeper's"
    table.clean_log(table.version)
    assert versions(table, ".checkpoint.parquet") == [100, 125]
    assert versions(table, ".json") == list(range(100, 131))
    assert consumed(table) == [(0, []), *((n, [f"{n}.csv"]) for n in range(1, 131))]
    assert consumed(table, 60)[0] == (61, ["61.csv"])
    assert instants(tmp_path / "t") == list(range(1, 131))
    again = opened(tmp_path / "t")
    assert (again.sequence, again.freshness) == (130, 130)


def test_the_log_is_cleaned_up_to_the_last_checkpoint_that_may_go(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 10):
        update(table, number)
        if number in (3, 6):
            table.checkpoint()
    table.checkpoint()
    assert table.clean_log(2) == 0
    assert table.clean_log(9) == 7  # six commits and a checkpoint
    assert versions(table, ".json") == [6, 7, 8, 9]
    assert versions(table, ".checkpoint.parquet") == [6, 9]
    assert table.clean_log(9) == 0
    update(table, 10)
    assert (table.sequence, table.freshness) == (10, 10)
    assert consumed(table, 3) == [(n, [f"{n}.csv"]) for n in range(4, 11)]
    assert instants(tmp_path / "t") == list(range(1, 11))


def test_what_was_consumed_survives_an_archive_that_was_cut_short(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 5):
        update(table, number)
        table.checkpoint()
    archive = tmp_path / "t/_freshline/consumed.jsonl"
    archive.parent.mkdir(exist_ok=True)
    archive.write_text('{"from":0,"to":2,"commits":[[0,[]],[1,[{"na')
    table.clean_log(4)
    assert consumed(table) == [(0, []), *((n, [f"{n}.csv"]) for n in range(1, 5))]


def test_a_log_that_others_cleaned_is_reported(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 5):
        update(table, number)
    table.checkpoint()
    for number in range(3):
        (tmp_path / f"t/_delta_log/{number:020d}.json").unlink()
    assert consumed(table, 2) == [(3, ["3.csv"]), (4, ["4.csv"])]
    with pytest.raises(InputError, match="lacks versions 1 to 2: their loaded files are not known"):
        consumed(table, 0)


def test_a_checkpoint_that_fails_does_not_fail_the_update(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = opened(tmp_path / "t")

    def full(self: StoredTable) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(StoredTable, "checkpoint", full)
        for number in range(1, 27):
            update(table, number)
    assert (table.sequence, versions(table, ".checkpoint.parquet")) == (26, [])
    assert "no space left" in caplog.text
    update(table, 27)
    assert versions(table, ".checkpoint.parquet") == [27]


def test_vacuum_removes_what_crashed_jobs_left_and_nothing_else(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    update(table, 1)
    crashed = tmp_path / "t" / job(table, "crashed", [2])
    (crashed / "_temporary/0").mkdir(parents=True)
    for name in (".part-0.parquet.crc", "_SUCCESS", "_temporary/0/part-1.parquet"):
        (crashed / name).write_text("left")
        age(crashed / name, 3)
    age(crashed / "part-0.parquet", 3)
    running = tmp_path / "t" / job(table, "running", [3])
    (running / "_temporary").mkdir()
    (tmp_path / "t/data/started").mkdir()
    (tmp_path / "t/data/gone/_temporary").mkdir(parents=True)
    age(tmp_path / "t/data/gone/_temporary", 3)
    live = tmp_path / "t/data/000001/part-0.parquet"
    age(live, 3)
    assert table.vacuum(timedelta(hours=2)) == 4
    left = sorted(
        path.relative_to(tmp_path / "t/data").as_posix() for path in (tmp_path / "t/data").rglob("*")
    )
    assert left == [
        "000001",
        "000001/part-0.parquet",
        "running",
        "running/_temporary",
        "running/part-0.parquet",
        "started",
    ]
    assert (table.version, DeltaTable(tmp_path / "t").version()) == (1, 1)
    table.commit("data/running", 3, [], {})
    assert instants(tmp_path / "t") == [1, 3]


def test_replaced_files_stay_for_readers_until_they_are_old_enough(tmp_path: Path) -> None:
    table = opened(tmp_path / "t")
    for number in range(1, 11):
        update(table, number)
    held = [tmp_path / "t" / file.path for file in table.files]
    for path in held:
        age(path, 100)
    table.compact(SMALL, TARGET)
    for number in (11, 12):
        table.checkpoint()
        table.commit(None, number, [], {})
    table.clean_log(table.version)
    assert table.vacuum(timedelta(minutes=30)) == 0
    assert all(time.time() - path.stat().st_mtime < 600 for path in held), "once the log has forgotten them"
    assert table.vacuum(timedelta(0)) == 10
    assert os.listdir(tmp_path / "t/data") == [Path(table.files[0].path).parent.name]
    assert consumed(table)[1] == (1, ["1.csv"]), "the archive is no orphan"
    assert instants(tmp_path / "t") == list(range(1, 11))
