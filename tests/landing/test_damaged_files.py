"""Of a data file either nothing is loaded, or the records that were found in it."""

from pathlib import Path

import pytest

from freshline.definitions.sections.feed_entry import FileFormat
from freshline.definitions.sections.feeds import Feed, Landing
from freshline.landing.record_reader import RecordReader
from freshline.landing.records import FileRecords, UnreadableFile
from freshline_lab.campaigns.kills.damage import SCHEMA, write_files
from freshline_lab.campaigns.kills.record_agreement import SparkRead, disagreements, read_by_spark

FILES = 300


def feed_of(format: FileFormat) -> Feed:
    landing = Landing(path="in", format=format, schema=SCHEMA, timestamp="ts")
    return Feed("damaged", "files", 1_000_000, landing=landing)


def found_in(feed: Feed, paths: list[Path]) -> dict[Path, FileRecords]:
    reader = RecordReader(feed.landing)
    found = {}
    for path in paths:
        try:
            found[path] = reader.read(path)
        except UnreadableFile:
            continue
    return found


@pytest.mark.parametrize("format", ["csv", "json"])
def test_spark_reads_the_records_that_were_found_or_the_file_is_refused(
    spark, tmp_path: Path, format: FileFormat
) -> None:
    feed = feed_of(format)
    found = found_in(feed, write_files(tmp_path, format, range(FILES)))
    read = read_by_spark(spark, feed, list(found))
    assert disagreements(found, read) == []
    # The sample says something: it has files of both kinds, and most that are taken have records.
    assert FILES / 5 < len(read) < FILES * 4 / 5
    assert sum(by_spark.records for by_spark in read.values()) > FILES / 2


def test_a_disagreement_is_noticed(spark, tmp_path: Path) -> None:
    path = tmp_path / "1.json"
    path.write_text('{"ts": "2024-05-06T12:00:00Z"} {"ts": "2024-05-06T12:00:01Z"}\n')
    read = read_by_spark(spark, feed_of("json"), [path])
    assert read == {path: SparkRead(1, 1_714_996_800_000_000)}
    assert disagreements({path: FileRecords(2, 1_714_996_800_000_000, 1_714_996_801_000_000)}, read) != []
