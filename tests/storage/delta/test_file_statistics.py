"""Statistics from Parquet footers: as Delta wants them, and never wrong."""

import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.statistics import in_delta_words, read_footer
from freshline.storage.delta.stored_table import StoredTable

TS = pa.timestamp("us", "UTC")


def statistics(path: Path, table: pa.Table, **options: Any) -> dict[str, Any]:
    pq.write_table(table, path, **options)
    content: dict[str, Any] = json.loads(read_footer(path, table.schema, "ts").statistics)
    return content


def test_every_kind_of_column_is_written_as_delta_wants_it(tmp_path: Path) -> None:
    table = pa.table(
        {
            "ts": pa.array([1_700_000_000_000_001, 1_700_000_000_000_002], TS),
            "local": pa.array([-1, 0], pa.timestamp("us")),
            "day": pa.array([date(1969, 12, 31), date(2024, 2, 29)]),
            "small": pa.array([-3, 4], pa.int8()),
            "large": pa.array([None, 2**62], pa.int64()),
            "real": [0.5, 1.5],
            "yes": [True, False],
            "text": ["é", "z"],
            "nothing": pa.array([None, None], pa.string()),
            "money": [Decimal("1.10"), Decimal("2.20")],
            "list": [[1], [2, 3]],
            "pair": [{"a": 1}, {"a": None}],
        }
    )
    assert statistics(tmp_path / "f.parquet", table, row_group_size=1) == {
        "numRecords": 2,
        "minValues": {
            "ts": "2023-11-14T22:13:20.000001Z",
            "local": "1969-12-31T23:59:59.999999",
            "day": "1969-12-31",
            "small": -3,
            "large": 2**62,
            "real": 0.5,
            "yes": False,
            "text": "z",
        },
        "maxValues": {
            "ts": "2023-11-14T22:13:20.000002Z",
            "local": "1970-01-01T00:00:00.000000",
            "day": "2024-02-29",
            "small": 4,
            "large": 2**62,
            "real": 1.5,
            "yes": True,
            "text": "é",
        },
        "nullCount": {
            "ts": 0,
            "local": 0,
            "day": 0,
            "small": 0,
            "large": 1,
            "real": 0,
            "yes": 0,
            "text": 0,
            "nothing": 2,
            "money": 0,
        },
    }


def test_delta_reads_back_what_was_written(tmp_path: Path) -> None:
    schema = pa.schema([("ts", TS), ("local", pa.timestamp("us")), ("text", pa.string())])
    stored = StoredTable.open_or_create(tmp_path / "t", "t", schema, "ts")
    (tmp_path / "t/data/x").mkdir(parents=True)
    columns = [[-1, 1_700_000_000_123_456], [5, 6], ["a" * 40, "b" * 40]]
    table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    pq.write_table(table, tmp_path / "t/data/x/part.parquet")
    stored.commit("data/x", 1, [], {})
    (live,) = stored.files
    assert (live.oldest, live.newest) == (-1, 1_700_000_000_123_456)
    assert StoredTable.open(tmp_path / "t", "ts").files == (live,)
    (add,) = pa.table(DeltaTable(tmp_path / "t").get_add_actions(flatten=True)).to_pylist()
    assert (add["min.text"], add["max.text"]) == ("a" * 32, "b" * 32 + "\U0010ffff")


@given(st.lists(st.text(min_size=28, max_size=36), min_size=1, max_size=4))
def test_bounds_of_texts_hold_in_the_order_of_bytes(tmp_path_factory: pytest.TempPathFactory, texts) -> None:  # type: ignore[no-untyped-def]
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    table = pa.table({"ts": pa.array([0] * len(texts), TS), "text": texts})
    found = statistics(tmp_path_factory.getbasetemp() / "texts.parquet", table)
    low, high = found["minValues"]["text"].encode(), found["maxValues"].get("text")
    assert all(low <= text.encode() for text in texts)
    assert high is None or all(text.encode() <= high.encode() for text in texts)


def test_a_text_that_goes_on_with_the_last_character_has_no_upper_bound(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([0], TS), "text": ["a" * 32 + "\U0010ffff" * 2]})
    found = statistics(tmp_path / "f.parquet", table)
    assert (found["minValues"]["text"], "text" in found["maxValues"]) == ("a" * 32, False)


def test_infinite_bounds_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([0, 1], TS), "real": [1.0, math.inf]})
    found = statistics(tmp_path / "f.parquet", table, row_group_size=1)
    assert (found["minValues"]["real"], "real" in found["maxValues"]) == (1.0, False)


def test_int96_timestamps_without_statistics_are_read_from_the_rows(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([7, None, 5], TS), "n": [1, 2, 3]})
    pq.write_table(table, tmp_path / "f.parquet", use_deprecated_int96_timestamps=True)
    footer = read_footer(tmp_path / "f.parquet", table.schema, "ts")
    assert (footer.oldest, footer.newest, footer.null_timestamps) == (5, 7, 1)


def test_files_without_any_statistics_are_bounded_in_time_all_the_same(tmp_path: Path) -> None:
    table = pa.table({"ts": pa.array([7, 5], TS), "n": [1, 2]})
    assert statistics(tmp_path / "f.parquet", table, write_statistics=False) == {
        "numRecords": 2,
        "minValues": {"ts": "1970-01-01T00:00:00.000005Z"},
        "maxValues": {"ts": "1970-01-01T00:00:00.000007Z"},
        "nullCount": {"ts": 0},
    }


def test_instants_beyond_the_year_9999_have_no_statistics_but_are_found(tmp_path: Path) -> None:
    far = 400_000_000_000_000_000
    assert in_delta_words(far, True) is None
    stored = StoredTable.open_or_create(tmp_path / "t", "t", pa.schema([("ts", TS)]), "ts")
    (tmp_path / "t/data/x").mkdir(parents=True)
    pq.write_table(pa.table({"ts": pa.array([0, far], TS)}), tmp_path / "t/data/x/part.parquet")
    stored.commit("data/x", 1, [], {})
    again = StoredTable.open(tmp_path / "t", "ts")
    (live,) = again.files
    assert live == LiveFile("data/x/part.parquet", 2, live.size, 0, None)
    assert len(again.files_between(far - 1, far)) == len(stored.files_between(far - 1, far)) == 1


def test_only_the_first_columns_and_the_timestamp_have_statistics(tmp_path: Path) -> None:
    table = pa.table({**{f"c{n}": [n] for n in range(40)}, "ts": pa.array([1], TS)})
    found = statistics(tmp_path / "f.parquet", table)
    assert list(found["minValues"]) == [*(f"c{n}" for n in range(32)), "ts"]
