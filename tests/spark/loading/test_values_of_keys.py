"""What is compared of a file is what Spark stores of it."""

from decimal import Decimal
from pathlib import Path

from freshline.definitions.sections.feeds import Feed, Landing
from freshline.landing.key_values import digest
from freshline.landing.record_reader import RecordReader
from freshline.spark.loading.frames import read_files

# One at a time: Spark keeps nothing of a record in which it cannot read a number.
SCHEMA = "ts timestamp, k string, v {}"
KINDS = ("bigint", "double", "float", "decimal(9,2)", "tinyint")
TEXTS = (
    "0", "-0", "1", "+1", "-1", "007", "1.", ".5", "-.5", "1.5", "1.50", "1.505", "1e3", "1E+3",
    "1e-3", "1e", "e1", "1e39", "1e309", "1e-400", "0x10", "0x1p3", "1_000", '"1,000"', "NaN",
    "nan", "Infinity", "-Infinity", "inf", "INF", "1d", "1f", "1L", "٣", "१", " 1", "1 ", "", '""',
    "null", "true", "--1", "1-", "1..0", "127", "128", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "9007199254740993", "0.1", "16777217", "1234567.89", "12345678.9",
    "99999999999999999999999999999999999999", "1e2147483648", "0.30000000000000004",
)  # fmt: skip


def test_numbers_of_csv_files_are_read_as_spark_does_or_not_at_all(spark, tmp_path: Path) -> None:
    compared = 0
    for kind in KINDS:
        landing = Landing(format="csv", schema=SCHEMA.format(kind), timestamp="ts", header=False)
        path = tmp_path / f"{KINDS.index(kind)}.csv"
        lines = [f"2026-01-01T00:00:00Z,k{number},{text}" for number, text in enumerate(TEXTS)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        found = RecordReader(landing).compared(path, "k", "v")
        assert found is not None
        assert found.odd
        feed = Feed("f", "files", 1, landing=landing)
        rows = read_files(spark, feed, [str(path)], malformed="bad").collect()
        assert len(rows) == len(TEXTS)
        for row in rows:
            ours = found.newest[digest(row.k)].value
            if ours is not None:
                compared += 1
                exact = Decimal(row.v) if kind == "decimal(9,2)" and row.v is not None else row.v
                assert ours == exact, (kind, row, ours)
    assert compared > 80
