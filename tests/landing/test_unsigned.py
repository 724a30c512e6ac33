"""Unsigned integers of Parquet files are read as what they are, or the file is refused."""

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freshline.landing.parquet_records import parquet_records
from freshline.landing.records import UnreadableFile
from freshline.sql.columns import parse_columns

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)


@pytest.mark.parametrize("by_dictionary", [True, False])
@pytest.mark.parametrize("declared", ["byte", "short", "int", "long", "decimal(20, 0)"])
@pytest.mark.parametrize("written", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
def test_spark_reads_what_was_written_or_the_file_is_refused(
    tmp_path: Path, spark, written, declared, by_dictionary
) -> None:
    largest = 2**written.bit_width - 1
    path = tmp_path / "1.parquet"
    rows = {"ts": pa.array([NOON] * 2, pa.timestamp("us", "UTC")), "N": pa.array([1, largest], written)}
    pq.write_table(pa.table(rows), path, use_dictionary=by_dictionary)
    schema = f"ts timestamp, n {declared}"
    columns = parse_columns(schema)
    bits = {"byte": 8, "short": 16, "int": 32, "long": 64}.get(declared, 65)
    if bits <= written.bit_width:
        with pytest.raises(UnreadableFile, match=f"`N` is {str(written).upper()}, which does not fit"):
            parquet_records(path, columns, "ts")
        return
    assert parquet_records(path, columns, "ts").count == 2
    records = spark.read.schema(schema).parquet(str(path))
    if declared.startswith("decimal") and written.bit_width < 64:
        # Spark refuses it itself, which does no harm.
        with pytest.raises(Exception, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
            records.collect()
    else:
        assert [int(row["n"]) for row in records.collect()] == [1, largest]
