"""The next row of a table: as one would find it by reading everything."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.storage.delta.next_row import next_row
from freshline.storage.delta.stored_table import StoredTable

BASE = pa.schema([("ts", pa.timestamp("us", "UTC")), ("_late", pa.bool_())])
DERIVED = pa.schema([("ts", pa.timestamp("us", "UTC"))])

Row = tuple[int, bool]


def rows(found: list[Row], schema: pa.Schema) -> pa.Table:
    columns = {"ts": [ts for ts, _ in found], "_late": [late for _, late in found]}
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def table(folder: Path, schema: pa.Schema, files: list[list[Row]], **options) -> StoredTable:
    """A table of these files, written as updates of Freshline's."""
    stored = StoredTable.open_or_create(folder / "t", "t", schema, "ts")
    for number, found in enumerate(files):
        (folder / "t" / f"data/{number}").mkdir(parents=True)
        pq.write_table(rows(found, schema), folder / "t" / f"data/{number}/part-0.parquet", **options)
        stored.commit(f"data/{number}", 10**15 + number, [], {})
    return stored


some_rows = st.lists(st.tuples(st.integers(-50, 400).map(lambda ts: 100 * ts), st.booleans()), min_size=1)


@sampled(150)
@given(
    st.lists(some_rows, max_size=5),
    st.integers(-60, 410).map(lambda ts: 100 * ts),
    st.integers(0, 300).map(lambda ts: 100 * ts),
    st.integers(1, 3),
)
def test_it_is_the_earliest_row_after_an_instant_that_is_not_late(files, after, length, group):
    to = after + length
    with TemporaryDirectory() as folder:
        stored = table(Path(folder), BASE, files, row_group_size=group)
        expected = min(
            (ts for found in files for ts, late in found if after < ts <= to and not late), default=None
        )
        assert next_row(stored, after, to) == expected
        near = next_row(stored, after, to, near_us=after + 500)
        if expected is not None and expected <= after + 500:
            assert near is not None
            assert expected <= near <= after + 500
        else:
            assert near == expected


@sampled(60)
@given(st.lists(some_rows, max_size=4), some_rows, st.integers(-60, 410).map(lambda ts: 100 * ts))
def test_of_other_writers_files_it_may_lie_a_millisecond_before(files, foreign, after):
    """delta-rs cuts statistics to milliseconds: what is beyond is found, and nothing is passed over."""
    with TemporaryDirectory() as folder:
        table(Path(folder), DERIVED, files)
        write_deltalake(folder + "/t", rows(foreign, DERIVED), mode="append")
        stored = StoredTable.open(Path(folder) / "t", "ts")
        expected = min((ts for found in [*files, foreign] for ts, _ in found if after < ts), default=None)
        found = next_row(stored, after, 10**9)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert max(after, expected - 1_000) < found <= expected


def without(stored: StoredTable, *numbers: int) -> None:
    """Takes files of a table away: opening one of them fails."""
    for number in numbers:
        (stored.path / f"data/{number}/part-0.parquet").unlink()


def test_files_that_statistics_tell_enough_of_are_not_opened(tmp_path):
    files = [[(second, False), (second + 5_000, False)] for second in (10_000, 20_000, 30_000, 40_000)]
    derived = table(tmp_path / "derived", DERIVED, files)
    without(derived, 0, 2, 3)
    assert next_row(derived, 21_000, 99_999) == 25_000  # of a file with rows before and after
    without(derived, 1)
    assert next_row(derived, 16_000, 99_999) == 20_000


def test_of_a_base_table_files_are_read_until_one_has_a_row_that_is_not_late(tmp_path):
    moments = (10_000, 20_000, 30_000, 40_000)
    base = table(tmp_path, BASE, [[(second, second == 20_000)] for second in moments])
    without(base, 0, 3)
    assert next_row(base, 16_000, 99_999) == 30_000
    without(base, 2)
    with pytest.raises(FileNotFoundError):
        next_row(base, 16_000, 99_999)


def test_a_row_that_is_near_enough_ends_the_search_among_files_with_old_rows(tmp_path):
    """Every file has a late row of long ago, so each may have a row at any time since."""
    stored = table(tmp_path, BASE, [[(1, True), (10_000 * second, False)] for second in range(1, 9)])
    assert next_row(stored, 35_000, 99_999, near_us=36_000) == 40_000
    without(stored, 0, 1, 2, 4, 5, 6, 7)
    assert next_row(stored, 35_000, 99_999, near_us=45_000) == 40_000


@pytest.mark.parametrize("options", [{"coerce_timestamps": "ms"}, {"use_deprecated_int96_timestamps": True}])
def test_timestamps_of_other_units_are_read(tmp_path, options):
    stored = table(tmp_path, BASE, [[(1_000, False), (7_000, True), (9_000, False)]], **options)
    assert next_row(stored, 1_000, 99_000) == 9_000
    assert next_row(stored, 500, 99_000) == 1_000
    assert next_row(stored, 1_001, 8_999) is None


def test_rows_of_a_file_that_lacks_a_column_are_nobodys(tmp_path):
    stored = table(tmp_path, BASE, [[(1_000, False)]])
    pq.write_table(pa.table({"n": [1]}), tmp_path / "t" / "foreign.parquet")
    add = {"path": "foreign.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0}
    (tmp_path / f"t/_delta_log/{stored.version + 1:020d}.json").write_text(
        json.dumps({"add": {**add, "dataChange": True}})
    )
    stored = StoredTable.open(tmp_path / "t", "ts")
    assert len(stored.files) == 2
    assert next_row(stored, 0, 9_999) == 1_000
    assert next_row(stored, 1_000, 9_999) is None
