"""How new a data file's newest record is."""

import gzip
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.base.instants import epoch_us
from freshline.definitions.sections.feed_entry import FileFormat
from freshline.definitions.sections.feeds import Landing
from freshline.landing import lines
from freshline.landing.parquet_process import ParquetProcess
from freshline.landing.parquet_records import parquet_records
from freshline.landing.record_reader import RecordReader
from freshline.landing.records import UnreadableFile
from freshline.sql.columns import parse_columns

SCHEMA = "src string, ts timestamp, n long"
NOON = epoch_us(datetime(2024, 5, 6, 12, tzinfo=UTC))


PARQUET: list[ParquetProcess] = []


@pytest.fixture(scope="module", autouse=True)
def _process() -> Iterator[None]:
    """One process for the file, begun when its tests are, and not when they are collected."""
    with closing(ParquetProcess()) as process:
        PARQUET[:] = [process]
        yield


def newest(
    path: Path, format: FileFormat, header: bool = True, name_timestamp: str | None = None
) -> int | None:
    landing = Landing(
        format=format, schema=SCHEMA, timestamp="ts", header=header, name_timestamp=name_timestamp
    )
    return RecordReader(landing, *PARQUET).read(path).newest_us


def reason(path: Path, format: FileFormat) -> str:
    with pytest.raises(UnreadableFile) as raised:
        newest(path, format)
    return raised.value.reason


def csv_of(tmp_path: Path, *timestamps: str, header: str = "src,ts,n\n") -> Path:
    path = tmp_path / "a.csv"
    path.write_text(header + "".join(f'"x, y",{timestamp},1\n' for timestamp in timestamps))
    return path


def json_of(tmp_path: Path, *timestamps: str) -> Path:
    path = tmp_path / "a.json"
    path.write_text("".join(f'{{"src": {{"a": [1]}}, "ts": {each}, "n": 1}}\n' for each in timestamps))
    return path


FORMS = [
    "2024-05-06T12:00:00",
    "2024-05-06 12:00:00",
    "2024-05-06 12:00",
    "2024-05-06T12:00:00Z",
    "2024-05-06 14:00:00+02:00",
    "2024-05-06T12:00:00.000000",
    "2024-05-06T12:00:00.000000789",
]


@pytest.mark.parametrize("text", FORMS)
def test_iso_timestamps_are_read_and_are_in_utc_without_a_zone(tmp_path: Path, text: str) -> None:
    assert newest(csv_of(tmp_path, "2024-05-05", text, "2024-05-06 11:59:59"), "csv") == NOON
    assert newest(csv_of(tmp_path, text), "csv") == NOON
    assert newest(json_of(tmp_path, f'"{text}"', '"2024-05-06T11:00:00"'), "json") == NOON


def test_zones_may_be_mixed(tmp_path: Path) -> None:
    assert newest(csv_of(tmp_path, *FORMS), "csv") == NOON
    assert newest(json_of(tmp_path, *(f'"{text}"' for text in FORMS)), "json") == NOON


def test_microseconds_count(tmp_path: Path) -> None:
    assert newest(csv_of(tmp_path, "2024-05-06T12:00:00.000001"), "csv") == NOON + 1
    assert newest(csv_of(tmp_path, "1969-12-31T23:59:59.999999"), "csv") == -1


def test_compressed_files_are_read(tmp_path: Path) -> None:
    for name, format, plain in (
        ("b.csv.gz", "csv", csv_of(tmp_path, FORMS[0])),
        ("b.json.gz", "json", json_of(tmp_path, f'"{FORMS[0]}"')),
    ):
        (tmp_path / name).write_bytes(gzip.compress(plain.read_bytes()))
        assert newest(tmp_path / name, format) == NOON  # type: ignore[arg-type]


def test_a_csv_without_a_header_is_read_by_position(tmp_path: Path) -> None:
    assert newest(csv_of(tmp_path, FORMS[0], header=""), "csv", header=False) == NOON


def test_a_header_in_another_case_after_a_blank_line_and_a_byte_order_mark_is_fine(tmp_path: Path) -> None:
    path = csv_of(tmp_path, FORMS[0], header='\ufeff\nSRC,"Ts",n\n\n')
    assert newest(path, "csv") == NOON


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", ""),
        ("a.csv", "src,ts,n"),
        ("a.csv", "src,ts,n\n\n\n"),
        ("a.csv", "\n\n"),
        ("a.json", ""),
        ("a.json", " \n\n"),
        ("a.parquet", ""),
    ],
)
def test_a_file_without_records_has_no_timestamp(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert newest(tmp_path / name, name.partition(".")[2]) is None  # type: ignore[arg-type]


def test_an_empty_compressed_file_has_no_records(tmp_path: Path) -> None:
    for name in ("a.csv.gz", "a.json.gz"):
        (tmp_path / name).write_bytes(gzip.compress(b""))
        assert newest(tmp_path / name, name.split(".")[1]) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("ts,src,n\n2024-05-06,x,1\n", "its header is ts,src,n, not src,ts,n"),
        ("src,ts\nx,2024-05-06\n", "its header is src,ts, not src,ts,n"),
        ("src,ts,n\nx,2024-05-06\n", "Expected 3 columns, got 2: x,2024-05-06"),
        ("src,ts,n\nx,yesterday,1\n", "'yesterday' is not a timestamp"),
        ("src,ts,n\nx,,1\n", "a record has no timestamp"),
    ],
)
def test_a_csv_that_does_not_match_its_schema_is_unreadable(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    assert said in reason(tmp_path / "a.csv", "csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"src": "x"}\n', "a record has no timestamp"),
        ('{"ts": null}\n', "a record has no timestamp"),
        ('{"ts": "soon"}\n', "'soon' is not a timestamp"),
        ('\n{"ts": 5}\n', "line 2 has 5 for a timestamp, not a text"),
        ('{"ts": "2024', "line 1 is not JSON: Unterminated string"),
        (
            '{"ts": "2024-05-06"}\n{"ts": "2024-05-06"}{"ts": "2024-05-07"}\n',
            "line 2 goes on after its first",
        ),
        ('{"ts": "2024-05-06"}, {"ts": "2024-05-07"}\n', "line 1 goes on after its first"),
        ('{"ts": "2024-05-06"} and so on\n', "line 1 goes on after its first JSON value: ' and so on'"),
        ('\n\n{"ts":\n"2024-05-06"}\n', "line 3 is not JSON"),
        ('{"ts": "2024-05-06"}{"ts": "2024-05-06", "n":\n{"ts": "2024-05-07"}}\n', "line 1 goes on after"),
        ('{"ts": "2024-05-06"}\n[{"ts": "2024-05-06"}, {"ts": "2024-05-07"}]\n', "line 2 is not an object"),
        ("null\n", "line 1 is not an object"),
        ('{"ts": "2024-05-06", "ts": "2024-05-07"}\n', "was specified twice"),
        ('{"ts": "2024-05-06"}\0\n', "line 1 goes on after"),
    ],
)
def test_json_that_does_not_match_its_schema_is_unreadable(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "a.json").write_text(content)
    assert said in reason(tmp_path / "a.json", "json")


def test_damaged_files_are_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"src,ts,n\n" * 100)[:30])
    (tmp_path / "b.csv.gz").write_bytes(b"no gzip at all")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 and no more")
    assert reason(tmp_path / "a.csv.gz", "csv")
    assert reason(tmp_path / "b.csv.gz", "csv")
    assert reason(tmp_path / "c.parquet", "parquet")


def parquet_of(tmp_path: Path, values: list[int | None], kind: pa.DataType, **options: object) -> Path:
    numbers = list(range(len(values)))
    timestamps = pa.array(values, pa.int64()).cast(kind)
    table = pa.table({"n": numbers, "TS": timestamps, "src": [{"host": "x"}] * len(values), "more": numbers})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2, **options)
    return tmp_path / "a.parquet"


@pytest.mark.parametrize(
    "options", [{}, {"write_statistics": False}, {"use_deprecated_int96_timestamps": True}]
)
@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        (pa.timestamp("us"), 1),
        (pa.timestamp("us", "UTC"), 1),
        (pa.timestamp("us", "Europe/Berlin"), 1),
        (pa.timestamp("ms"), 0.001),
    ],
)
def test_parquet_is_read_from_its_statistics_or_its_column(
    tmp_path: Path, kind: pa.DataType, factor: float, options: dict[str, object]
) -> None:
    instants = [NOON - 3_000_000, NOON, NOON - 1_000_000, NOON - 2_000_000, NOON - 5_000_000]
    path = parquet_of(tmp_path, [int(each * factor) for each in instants], kind, **options)
    assert newest(path, "parquet") == NOON


def test_statistics_are_used_where_there_are_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet_of(tmp_path, [NOON, NOON - 1], pa.timestamp("us"))
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", None)
    assert parquet_records(path, parse_columns("n long"), "ts").newest_us == NOON


@pytest.mark.parametrize("options", [{}, {"write_statistics": False}])
def test_a_parquet_record_without_a_timestamp_is_unreadable(
    tmp_path: Path, options: dict[str, object]
) -> None:
    path = parquet_of(tmp_path, [NOON, None], pa.timestamp("us"), **options)
    assert reason(path, "parquet") == "a record has no timestamp"


def test_a_parquet_file_of_other_columns_is_unreadable(tmp_path: Path) -> None:
    path = parquet_of(tmp_path, [NOON], pa.int64())
    assert reason(path, "parquet") == "its column `ts` is of the type None, not a timestamp"
    pq.write_table(pa.table({"n": [1], "src": ["x"]}), path)
    assert reason(path, "parquet") == "it has no column `ts`"


def test_a_parquet_file_without_a_declared_column_is_unreadable_whoever_says_its_timestamp(
    tmp_path: Path,
) -> None:
    path = parquet_of(tmp_path, [NOON], pa.timestamp("us"))
    pq.write_table(pq.read_table(path).drop_columns(["n"]), tmp_path / "20240506T12.parquet")
    assert reason(tmp_path / "20240506T12.parquet", "parquet") == "it has no column `n`"
    with pytest.raises(UnreadableFile) as raised:
        newest(tmp_path / "20240506T12.parquet", "parquet", name_timestamp="%Y%m%dT%H.parquet")
    assert raised.value.reason == "it has no column `n`"


def test_a_parquet_file_with_a_timestamp_in_its_name_is_not_read_beyond_its_columns(tmp_path: Path) -> None:
    path = parquet_of(tmp_path, [NOON - 1, None], pa.timestamp("us")).rename(tmp_path / "20240506T12.parquet")
    assert newest(path, "parquet", name_timestamp="%Y%m%dT%H.parquet") == NOON
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(UnreadableFile):
        newest(path, "parquet", name_timestamp="%Y%m%dT%H.parquet")


def test_a_parquet_file_without_rows_has_no_timestamp(tmp_path: Path) -> None:
    assert newest(parquet_of(tmp_path, [], pa.timestamp("us")), "parquet") is None


def test_the_name_says_it_where_it_has_a_pattern(tmp_path: Path) -> None:
    path = tmp_path / "flows-20240506T12.csv"
    path.write_text("src,ts,n\nx,whenever,1\n")
    assert newest(path, "csv", name_timestamp="flows-%Y%m%dT%H.csv") == NOON
    with pytest.raises(UnreadableFile) as raised:
        newest(path, "csv", name_timestamp="flows-%Y%m%d.csv")
    assert raised.value.reason == "its name does not follow the pattern flows-%Y%m%d.csv"


def test_a_file_that_has_gone_is_no_unreadable_file(tmp_path: Path) -> None:
    for format in ("csv", "json", "parquet"):
        with pytest.raises(FileNotFoundError):
            newest(tmp_path / f"a.{format}", format)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), min_size=1, max_size=50))
def test_all_formats_find_the_same_newest_record(tmp_path_factory: pytest.TempPathFactory, instants) -> None:
    folder = tmp_path_factory.mktemp("formats")
    expected = max(epoch_us(instant) for instant in instants)
    texts = [instant.isoformat() for instant in instants]
    assert newest(csv_of(folder, *texts), "csv") == expected
    assert newest(json_of(folder, *(f'"{text}"' for text in texts)), "json") == expected
    values: list[int | None] = [epoch_us(instant) for instant in instants]
    assert newest(parquet_of(folder, values, pa.timestamp("us")), "parquet") == expected


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC")])
def test_nanoseconds_are_refused_by_that_name_where_a_timestamp_is_declared(
    tmp_path: Path, kind: pa.DataType
) -> None:
    path = parquet_of(tmp_path, [NOON * 1_000], kind)
    assert "its column `TS` has timestamps in nanoseconds" in reason(path, "parquet")
    table = pq.read_table(path)
    # Spark reads them as a long, and what is not declared does not matter.
    others = [table["TS"].cast(pa.timestamp("us")), table["TS"], table["TS"]]
    pq.write_table(pa.table([*others, table["src"]], ["ts", "n", "more", "src"]), path)
    assert newest(path, "parquet") == NOON


def count(path: Path, format: FileFormat, header: bool = True, encoding: str = "utf-8") -> int:
    landing = Landing(format=format, schema=SCHEMA, timestamp="ts", header=header, encoding=encoding)
    return RecordReader(landing, *PARQUET).read(path).count


LINES = [f"x,{FORMS[0]},1", f'"x ""y"", z",{FORMS[0]},1', f",{FORMS[0]},"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("blank", ["", "\n", "\n\n\n"])
def test_records_are_counted_whatever_ends_their_lines(tmp_path: Path, end: str, blank: str) -> None:
    (tmp_path / "a.csv").write_text(
        "\n" + ("\n" + blank).join(["src,ts,n", *LINES]).replace("\n", end), encoding="utf-8-sig", newline=""
    )
    assert count(tmp_path / "a.csv", "csv") == 3
    objects = ("\n" + blank).join([f'{{"ts": "{FORMS[0]}"}}', f' {{"ts": "{FORMS[0]}"}}\t'])
    (tmp_path / "a.json").write_text(objects.replace("\n", end), encoding="utf-8-sig", newline="")
    assert count(tmp_path / "a.json", "json") == 2
    assert count(parquet_of(tmp_path, [NOON] * 5, pa.timestamp("us")), "parquet") == 5


@pytest.mark.parametrize("length", range(-2, 3))
def test_lines_may_end_where_a_block_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    line = LINES[0] + "\r\n"
    monkeypatch.setattr(lines, "_BLOCK_BYTES", len(line) + length)
    (tmp_path / "a.csv").write_bytes((line * 50 + "\r" * 20 + line.rstrip()).encode())
    assert count(tmp_path / "a.csv", "csv", header=False) == 51


def test_a_line_that_never_ends_is_unreadable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LINE_BYTES_MAX", 5 << 20)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"src,ts,n\n" + b"x" * (12 << 20)))
    assert reason(tmp_path / "a.csv.gz", "csv") == "line 2 is longer than 5 MiB"


def test_a_csv_record_of_two_lines_is_unreadable(tmp_path: Path) -> None:
    path = csv_of(tmp_path, FORMS[0])
    path.write_text(path.read_text() + f'"x\ny",{FORMS[0]},1\n')
    assert reason(path, "csv") == "line 3 has a quote that is not closed: a record is one line"


@pytest.mark.parametrize(
    ("encoding", "data", "said"),
    [
        ("utf-8", b"caf\xe9", "line 3 is not utf-8: byte 0xe9"),
        ("utf-8", b"\xed\xa0\x80", "line 3 is not utf-8: byte 0xed"),
        ("us-ascii", "café".encode(), "line 3 is not us-ascii: byte 0xc3"),
        ("windows-1252", b"\x81", "line 3 is not windows-1252: byte 0x81"),
        ("utf-8", "café €".encode(), None),
        ("windows-1252", b"caf\xe9 \x80", None),
        ("iso-8859-1", bytes(range(128, 256)), None),
    ],
)
def test_bytes_that_are_not_the_feeds_encoding_are_unreadable(
    tmp_path: Path, encoding: str, data: bytes, said: str | None
) -> None:
    path = csv_of(tmp_path, FORMS[0])
    path.write_bytes(path.read_bytes() + data + f",{FORMS[0]},1\n".encode())
    if said is None:
        assert count(path, "csv", encoding=encoding) == 2
    else:
        with pytest.raises(UnreadableFile) as raised:
            count(path, "csv", encoding=encoding)
        assert raised.value.reason == said
