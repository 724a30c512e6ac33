"""A run goes on over files that are not what they should be; each is put aside with its reason."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from freshline.definitions.load import loads
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.storage.control.quarantine import Quarantine

PROJECT = """\
name: damaged
pools: {updates: {tracks: 2, policy: prp}}
feeds:
  lines: {path: lines, format: json, schema: "ts timestamp, n long", timestamp: ts, period: 500ms}
  texts: {path: texts, format: csv, schema: "ts timestamp, n string", timestamp: ts, period: 500ms}
  flows: {path: flows, format: parquet, schema: "ts timestamp, n long", timestamp: ts, period: 500ms}
tables:
  lines: {feed: lines, cost: {startup: 5s}}
  texts: {feed: texts, select: "SELECT ts, n FROM texts WHERE n != 'x'", cost: {startup: 5s}}
  flows: {feed: flows, cost: {startup: 5s}}
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


def instant(number: int) -> datetime:
    return START + timedelta(seconds=number)


def land_lines(folder: Path) -> None:
    folder.mkdir()
    for number in (1, 2, 3):
        record = json.dumps({"ts": instant(number).isoformat(), "n": number})
        again = json.dumps({"ts": instant(9).isoformat(), "n": 9})
        (folder / f"{number}.json").write_text(record + (again if number == 2 else "") + "\n")


def land_texts(folder: Path) -> None:
    folder.mkdir()
    for number, text in ((1, b"tea"), (2, b"caf\xe9"), (3, b"x")):
        row = instant(number).isoformat().encode() + b"," + text
        (folder / f"{number}.csv").write_bytes(b"ts,n\n" + row + b"\n")


def land_flows(folder: Path) -> None:
    folder.mkdir()
    for number in (1, 2, 3, 4, 5):
        kind = pa.timestamp("ns" if number == 4 else "us", "UTC")
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"ts": pa.array([instant(number)], kind), "n": [number]}), path)
        data = bytearray(path.read_bytes())
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        if number == 2:  # Arrow aborts over statistics of another type
            data[data.index(b"\x1c\x15\x04\x19", footer) + 2] = 0
        if number == 3:  # its statistics say that its record is of the day after
            newest = int(instant(number).timestamp()) * 1_000_000
            later = newest + 86_400_000_000
            data = data.replace(newest.to_bytes(8, "little"), later.to_bytes(8, "little"))
            first = data.index(later.to_bytes(8, "little"))
            data[first : first + 8] = newest.to_bytes(8, "little")  # the record itself
        path.write_bytes(data)
    (folder / "6.parquet").symlink_to(folder / "1.parquet")


def numbers(folder: Path, table: str) -> list[object]:
    rows = DeltaTable(folder / "warehouse" / "tables" / table).to_pyarrow_table(columns=["n"])
    return sorted(rows["n"].to_pylist())


def test_what_is_damaged_is_put_aside_and_the_rest_is_loaded(tmp_path: Path, spark) -> None:
    land_lines(tmp_path / "lines")
    land_texts(tmp_path / "texts")
    land_flows(tmp_path / "flows")
    with Runner(
        loads(PROJECT), tmp_path, tmp_path / "warehouse", RunOptions(session=spark, drain=True)
    ) as runner:
        runner.run(300_000_000)
        notes = runner.status().broken_assumptions
    assert runner.stopped_because == "nothing is left to load"
    assert numbers(tmp_path, "lines") == [1, 3]
    assert numbers(tmp_path, "texts") == ["tea"]
    assert numbers(tmp_path, "flows") == [1, 5]
    entries = Quarantine(tmp_path / "warehouse" / "_freshline" / "quarantine").entries()
    reasons = {f"{entry.feed}/{entry.name}": entry.reason for entry in entries}
    assert reasons.pop("lines/2.json").startswith('line 1 goes on after its first JSON value: \'{"ts"')
    assert reasons.pop("flows/4.parquet").startswith("its column `ts` has timestamps in nanoseconds")
    assert reasons == {
        "texts/2.csv": "line 2 is not utf-8: byte 0xe9",
        "flows/2.parquet": "it is damaged: reading it ended with SIGABRT",
        "flows/3.parquet": "Spark read records from 2026-01-01T00:00:03.000000Z to "
        "2026-01-01T00:00:03.000000Z, but 2026-01-02T00:00:03.000000Z to 2026-01-02T00:00:03.000000Z "
        "was found",
    }
    links = [note for note in notes if "symbolic link" in note]
    assert len(links) == 1
    assert "flows: 6.parquet is a symbolic link" in links[0]
