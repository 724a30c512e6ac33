"""Why Spark cannot read a file, in a sentence that names the record, the column and the value."""

from pathlib import Path

import pytest

from freshline.definitions.load import loads
from freshline.spark.errors import sentence
from freshline.spark.loading.frames import read_files
from freshline.spark.loading.malformed import malformed_record

PROJECT = """\
name: reasons
pools: {{updates: {{tracks: 1}}}}
feeds:
  orders:
    {{path: landing, format: {format}, schema: "ts timestamp, n long, price double", timestamp: ts,
     period: 1s}}
tables:
  orders: {{feed: orders}}
"""
TS = "2026-01-01T00:00:00Z"
GOOD = {"csv": f"ts,n,price\n{TS},1,2.5\n", "json": f'{{"ts": "{TS}", "n": 1, "price": 2.5}}\n'}
CASES = {
    "a word for a number": (
        "csv",
        f"{TS},many,2.5",
        'For input string: "many" in column n of the record RECORD',
    ),
    "the same word twice": ("csv", f"{TS},many,many", 'For input string: "many" in the record RECORD'),
    "a value with a comma": (
        "csv",
        f'{TS},"1,000",2.5',
        'For input string: "1,000" in column n of the record RECORD',
    ),
    "a day for a number": ("csv", f"{TS},1,2026-01-01", 'For input string: "2026-01-01" in column price of'),
    "a record cut short": ("csv", TS, "[MALFORMED_CSV_RECORD] Malformed CSV record: "),
    "a text for a number": (
        "json",
        f'{{"ts": "{TS}", "n": "many"}}',
        "[CANNOT_PARSE_JSON_FIELD] Cannot parse the field name 'n' and the value many of",
    ),
    "a number too large": (
        "json",
        f'{{"ts": "{TS}", "n": 99999999999999999999}}',
        "Numeric value (99999999999999999999) out of range of long",
    ),
    "half an object": ("json", f'{{"ts": "{TS}", "n": 1,}}', "Unexpected character"),
    "a long record": ("json", f'{{"ts": "{TS}", "n": "{"m" * 5_000}"}}', "[CANNOT_PARSE_JSON_FIELD]"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reason_names_the_record_and_what_is_wrong_with_it(tmp_path: Path, spark, case: str) -> None:
    kind, record, words = CASES[case]
    feed = loads(PROJECT.format(format=kind)).feeds["orders"]
    path = tmp_path / f"1.{kind}"
    path.write_text(f"{GOOD[kind]}{record}\n", encoding="utf-8")
    with pytest.raises(Exception) as raised:  # noqa: PT011  (of many types, and some are Java's)
        read_files(spark, feed, [str(path)]).write.parquet(str(tmp_path / "out"))
    said = sentence(raised.value)
    reason = said + malformed_record(spark, feed, path, said)
    assert reason.startswith(words.replace("record RECORD", f"record {record}"))
    assert reason.count(record[:120]) == 1
    assert "FAILED_READ_FILE" not in reason
    assert "\n" not in reason


@pytest.mark.parametrize("kind", GOOD)
def test_of_a_file_that_spark_reads_no_record_is_named(tmp_path: Path, spark, kind: str) -> None:
    feed = loads(PROJECT.format(format=kind)).feeds["orders"]
    path = tmp_path / f"1.{kind}"
    path.write_text(GOOD[kind], encoding="utf-8")
    assert malformed_record(spark, feed, path, "[DIVIDE_BY_ZERO]") == ""


@pytest.mark.parametrize(("kind", "content"), [("json.gz", b"\x1f\x8bno"), ("csv.gz", b"\x1f\x8b\x08no")])
def test_of_a_damaged_file_the_cause_is_named(tmp_path: Path, spark, kind: str, content: bytes) -> None:
    feed = loads(PROJECT.format(format=kind.split(".")[0])).feeds["orders"]
    path = tmp_path / f"1.{kind}"
    path.write_bytes(content)
    with pytest.raises(Exception) as raised:  # noqa: PT011
        read_files(spark, feed, [str(path)]).write.parquet(str(tmp_path / "out"))
    said = sentence(raised.value)
    assert said
    assert "FAILED_READ_FILE" not in said
    assert not said.startswith("java.")
