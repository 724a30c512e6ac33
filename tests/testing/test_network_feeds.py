"""The generator of network feeds: what it writes, when, and that it can be known beforehand."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet
import pytest

from freshline.base.errors import InputError
from freshline.testing.network import NETWORK, FeedSpec, Generator
from patience import PATIENCE_S

S = 1_000_000
START = 1_763_245_470 * S  # a multiple of every period here
PACKETS = FeedSpec("packets", "csv", 3, 50)


def instant(at_us: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_us)


def read(path: Path, schema: pa.Schema) -> pa.Table:
    """What a plain pyarrow reader finds in a file."""
    if path.suffix == ".csv":
        options = pyarrow.csv.ConvertOptions(column_types=schema, include_columns=schema.names)
        return pyarrow.csv.read_csv(path, convert_options=options)
    if path.suffix == ".json":
        options = pyarrow.json.ParseOptions(explicit_schema=schema)
        return pyarrow.json.read_json(path, parse_options=options)
    return pyarrow.parquet.read_table(path)


@pytest.mark.parametrize(
    "spec", [*NETWORK, FeedSpec("r", "json", 1, 9, kind="records")], ids=lambda s: s.name
)
def test_a_file_holds_the_rows_that_the_generator_foretells(spec: FeedSpec, tmp_path: Path):
    generator = Generator([spec], tmp_path, seed=7, start_us=START)
    (path, *_) = generator.due(START + 2 * spec.period_us)
    table = generator.table(spec.name, 1)
    assert read(path, table.schema) == table
    rows = generator.rows(spec.name, 1)
    assert len(rows) == spec.rows
    assert rows == [tuple(row.values()) for row in table.to_pylist()]
    arrow_types = {"timestamp[us, tz=UTC]": "timestamp", "int64": "long", "int32": "int", "string": "string"}
    assert spec.schema == ", ".join(f"{field.name} {arrow_types[str(field.type)]}" for field in table.schema)


def test_rows_follow_from_seed_feed_and_number(tmp_path: Path):
    def rows(seed: int = 1, name: str = "packets", number: int = 1) -> list[tuple[object, ...]]:
        spec = replace(PACKETS, name=name, kind="packets")
        records = Generator([spec], tmp_path, seed, START).rows(name, number)
        return [record[1:] for record in records]

    assert rows() == rows()
    assert len({str(rows(**changed)) for changed in ({}, {"seed": 2}, {"name": "p"}, {"number": 2})}) == 4


def test_files_come_when_they_are_due_by_the_epoch_and_each_but_once(tmp_path: Path):
    feeds = [PACKETS, FeedSpec("flows", "parquet", 2, 5, phase_s=0.5)]
    generator = Generator(feeds, tmp_path, seed=0, start_us=START + S)
    names = [[path.name for path in generator.due(START + second * S)] for second in (1, 2, 3, 3, 6)]
    begin = "20251115T2224"
    assert names == [
        [],
        [],  # the period of flows that ends at 30.5 s lies before the start
        [f"flows-{begin}32.500000Z.parquet", f"packets-{begin}33.000000Z.csv"],
        [],
        [f"flows-{begin}34.500000Z.parquet", f"packets-{begin}36.000000Z.csv"],
    ]
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == sorted(chain.from_iterable(names))


def test_timestamps_fill_the_period_that_ends_when_the_file_is_due(tmp_path: Path):
    generator = Generator([PACKETS], tmp_path, seed=0, start_us=START)
    for number in (1, 2):
        times = [row[0] for row in generator.rows("packets", number)]
        assert times == sorted(times)
        assert instant(START + (number - 1) * 3 * S) < times[0]
        assert times[-1] == instant(START + number * 3 * S) == instant(generator.due_us("packets", number))
        # Spread: every fiftieth of the period has its record.
        assert all(later - earlier < timedelta(seconds=2 * 3 / 50) for earlier, later in pairwise(times))


def test_late_records_are_older_than_the_file_before(tmp_path: Path):
    generator = Generator([replace(PACKETS, late=0.3, rows=2_000)], tmp_path, seed=0, start_us=START)
    times = [row[0] for row in generator.rows("packets", 1)]
    late = [at for at in times if at <= instant(START)]
    assert 500 < len(late) < 700
    assert min(late) > instant(START - 6 * S)
    assert max(times) == times[-1] == instant(START + 3 * S)


def test_after_an_outage_everything_missed_is_delivered_one_file_a_period(tmp_path: Path):
    feeds = [replace(PACKETS, outages=((6, 15),)), FeedSpec("flows", "csv", 6, 5)]
    generator = Generator(feeds, tmp_path, seed=0, start_us=START)
    delivered = {
        second: [(path.parent.name, path.name[-13:-5]) for path in generator.due(START + second * S)]
        for second in range(3, 19, 3)
    }
    assert delivered == {
        3: [("packets", "3.000000")],
        6: [("flows", "6.000000")],
        9: [],
        12: [("flows", "2.000000")],
        15: [("packets", due) for due in ("6.000000", "9.000000", "2.000000", "5.000000")],
        18: [("packets", "8.000000"), ("flows", "8.000000")],
    }
    assert [generator.numbers("packets", START + second * S) for second in (12, 15)] == [[1], [1, 2, 3, 4, 5]]
    undisturbed = Generator([PACKETS], tmp_path / "other", seed=0, start_us=START)
    assert [generator.rows("packets", n) for n in range(1, 6)] == [
        undisturbed.rows("packets", n) for n in range(1, 6)
    ]


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_a_corrupt_file_cannot_be_read_and_has_no_rows(format_: str, tmp_path: Path):
    spec = replace(PACKETS, format=format_, corrupt=frozenset({2}))
    generator = Generator([spec], tmp_path, seed=0, start_us=START)
    good, bad = generator.due(START + 6 * S)
    schema = generator.table("packets", 2).schema
    assert read(good, schema).num_rows == 50
    with pytest.raises((pa.ArrowInvalid, pa.ArrowKeyError)):
        read(bad, schema)
    assert generator.rows("packets", 2) == []


def test_a_generator_on_a_thread_writes_until_it_is_stopped(tmp_path: Path):
    generator = Generator([replace(PACKETS, period_s=0.02)], tmp_path, 0, time.time_ns() // 1_000)
    stop = threading.Event()
    writer = threading.Thread(target=generator.run, args=(stop,))
    writer.start()
    deadline = time.monotonic() + PATIENCE_S
    while len(list(tmp_path.rglob("packets-*.csv"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    stop.set()
    writer.join(PATIENCE_S)
    assert not writer.is_alive()
    written = sorted(tmp_path.rglob("*.csv"))
    assert written[:3] == [generator.path("packets", number) for number in (1, 2, 3)]


def test_the_command_writes_the_feeds_that_it_is_asked_for(tmp_path: Path):
    command = [sys.executable, "-m", "freshline.testing.network", "--into", str(tmp_path / "landing")]
    feeds = ["--feed", "packets=50ms", "--feed", "alerts", "--rows", "4", "--for", "300ms"]
    done = subprocess.run([*command, *feeds], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(folder.name for folder in (tmp_path / "landing").iterdir()) == ["alerts", "packets"]
    written = list((tmp_path / "landing" / "packets").iterdir())
    assert written
    assert all(len(file.read_text(encoding="utf-8").splitlines()) == 5 for file in written)
    wrong = subprocess.run([*command, "--feed", "weather"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2
    assert "there is no feed `weather`. The feeds are packets, flows," in wrong.stderr


@pytest.mark.parametrize("changed", [{"name": "weather"}, {"kind": "weather"}, {"rows": 0}, {"period_s": 0}])
def test_a_feed_that_cannot_be_generated_is_an_input_error(changed: dict[str, object]):
    with pytest.raises(InputError):
        replace(PACKETS, **changed)
