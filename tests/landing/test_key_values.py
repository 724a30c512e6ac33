"""The newest value of each key in a data file, whatever its format; what is uncertain is not guessed."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.definitions.sections.feed_entry import FileFormat
from freshline.definitions.sections.feeds import Landing
from freshline.landing import key_values
from freshline.landing.key_values import KeyValues, NewestValue, digest
from freshline.landing.parquet_process import ParquetProcess
from freshline.landing.record_reader import RecordReader

START = datetime(2026, 1, 1, tzinfo=UTC)
START_US = int(START.timestamp()) * 1_000_000
SCHEMA = "ts timestamp, k string, n long, v double, d decimal(9, 2), f float"
ARROW = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("k", pa.string()),
        ("n", pa.int64()),
        ("v", pa.float64()),
        ("d", pa.decimal128(9, 2)),
        ("f", pa.float32()),
    ]
)


PARQUET: list[ParquetProcess] = []


@pytest.fixture(scope="module", autouse=True)
def _process() -> Iterator[None]:
    """One process for the file, begun when its tests are, and not when they are collected."""
    with closing(ParquetProcess()) as process:
        PARQUET[:] = [process]
        yield


def write(folder: Path, format: FileFormat, rows: list[dict[str, Any]]) -> Path:
    path = folder / f"a.{format}"
    if format == "parquet":
        pq.write_table(pa.Table.from_pylist(rows, ARROW), path)
    elif format == "json":
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows))
    else:
        lines = [
            ",".join("" if row.get(name) is None else str(row[name]) for name in ARROW.names) for row in rows
        ]
        path.write_text("\n".join([",".join(ARROW.names), *lines]) + "\n")
    return path


def found(path: Path, key: str = "k", value: str = "v") -> KeyValues | None:
    format: Any = path.suffix[1:]
    landing = Landing(format=format, schema=SCHEMA, timestamp="ts")
    return RecordReader(landing, *PARQUET).compared(path, key, value)


def row(second: int, k: Any = "a", v: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "ts": START + timedelta(seconds=second),
        "k": k,
        "n": 1,
        "v": v,
        "d": Decimal("1.50"),
        "f": 0.1,
    } | more


ROWS = st.lists(
    st.builds(
        row,
        st.integers(0, 5),
        st.sampled_from(["a", "b", "käse", "x y", "0" * 400]),
        st.floats(allow_nan=False, allow_infinity=False),
        n=st.integers(-(2**53), 2**53),
    ),
    min_size=1,
    max_size=20,
)


@sampled(60)
@given(ROWS)
@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_the_last_of_the_newest_records_of_a_key_counts(tmp_path_factory, format: FileFormat, rows) -> None:
    path = write(tmp_path_factory.mktemp("rows"), format, rows)
    for value in ("v", "n"):
        expected: dict[bytes, NewestValue] = {}
        for each in sorted(rows, key=lambda each: each["ts"]):
            at_us = round((each["ts"] - START).total_seconds()) * 1_000_000 + START_US
            expected[digest(each["k"])] = NewestValue(at_us, each[value])
        assert found(path, value=value) == KeyValues(expected)


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_numbers_are_as_they_will_be_stored(tmp_path: Path, format: FileFormat) -> None:
    path = write(tmp_path, format, [row(1, f=0.1, d=Decimal("12.30"), n=2**53 + 1)])
    values = {value: found(path, value=value) for value in ("v", "n", "d", "f")}
    assert {name: each and each.newest[digest("a")].value for name, each in values.items()} == {
        "v": 1.0,
        "n": 2**53 + 1,
        "d": Decimal("12.3"),
        "f": 0.10000000149011612,
    }
    assert found(path, key="n") == KeyValues({digest(2**53 + 1): NewestValue(START_US + 1_000_000, 1.0)})


@pytest.mark.parametrize(
    "text", ["NaN", "Infinity", "1d", "0x1p3", " 1", "1 ", "1,5", "١", "", "--1", "1e9999"]
)
def test_a_number_that_is_not_written_plainly_makes_its_file_odd(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "csv", [row(1, v=f'"{text}"' if text else None), row(2)])
    values = found(path)
    assert values is None or values.odd or values.newest[digest("a")].value == 1.0
    path = write(tmp_path, "csv", [row(1), row(2, v=f'"{text}"' if text else None)])
    values = found(path)
    assert values is None or values.newest[digest("a")].value is None


def test_a_decimal_of_more_digits_than_its_column_is_stored_as_another(tmp_path: Path) -> None:
    for text in ("1.505", "12345678.1", "1e8"):
        values = found(write(tmp_path, "csv", [row(1, d=text)]), value="d")
        assert values is not None
        assert values.newest[digest("a")].value is None


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_records_without_a_key_or_a_value_make_a_file_odd(tmp_path: Path, format: FileFormat) -> None:
    for wrong in ({"k": None}, {"v": None}):
        values = found(write(tmp_path, format, [row(1, **wrong), row(2, k="b")]))
        assert values is not None
        assert values.odd
        assert values.newest[digest("b")].value == 1.0


def test_what_cannot_be_read_as_declared_is_not_compared(tmp_path: Path) -> None:
    for wrong in ({"k": 5}, {"v": "1.0"}, {"v": [1]}, {"ts": "noon"}):
        assert found(write(tmp_path, "json", [row(1), row(2, **wrong)])) is None
    assert found(write(tmp_path, "csv", [row(1), row(2, ts="noon")])) is None


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
def test_a_file_of_too_many_keys_is_not_compared(tmp_path: Path, format: FileFormat) -> None:
    rows = [row(1, k=f"key {number}") for number in range(key_values.KEYS_MAX + 1)]
    assert found(write(tmp_path, format, rows)) is None
    few = found(write(tmp_path, format, rows[:-1]))
    assert few is not None
    assert len(few.newest) == key_values.KEYS_MAX


def test_keys_of_any_length_take_the_same_memory() -> None:
    assert {len(digest(key)) for key in ("", "a", "a" * 1_000_000, 5)} == {16}
    assert digest("5") == digest(5)  # a column is of one type
