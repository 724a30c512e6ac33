"""Random data files: valid, odd and damaged.

All have the columns of `SCHEMA`. Of each file an update loads either nothing, or exactly the records found.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA: Final = "src string, ts timestamp, n long"
_NOON_S: Final = 1_714_996_800  # 2024-05-06 12:00 UTC
_TEXTS: Final = (
    *("x", "", "a b", " ", "tea, green", 'a "b"', "café", "日本"),
    *("\\", "a\\", "'", "#", "\u2028", "\x0b"),
)
_ENDS: Final = ("\n", "\n", "\n", "\r\n", "\r")
_NOISE: Final = (
    *(b'"', b'""', b"'", b",", b"\n", b"\r", b"\r\n", b"\n\n", b"\n \n", b"\n\t\n", b"\n\x1f\n", b"\x00"),
    *(b"\n\x00\n", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\", b"\\n", b" ", b"\t", b"#"),
    *(b"{", b"}", b"[", b"]", b":", b"null", b"{}", b"\x1a", b"\xc2\x85", b"\xe2\x80\xa8", b"\x0c", b"0"),
)


def csv_file(random: Random) -> bytes:
    """A CSV file with a header."""
    quoted = random.random() < 0.3
    rows = [["src", "ts", "n"], *(_values(random) for _ in range(random.randrange(6)))]
    end = random.choice(_ENDS)
    data = end.join(",".join(_field(value, quoted) for value in row) for row in rows)
    return _finished(random, data + random.choice((end, "", end * 2)))


def json_file(random: Random) -> bytes:
    """A file of JSON lines."""
    records = [_object(random) for _ in range(random.randrange(6))]
    between = [random.choice(_ENDS)] * 8
    if random.random() < 0.3:  # several on a line
        odd = ("", " ", "\t", ",", ", ", "\n\n", "\n ", "\x00", " x\n")
        between[random.randrange(8)] = random.choice(odd)
    data = "".join(record + end for record, end in zip(records, between, strict=False))
    if random.random() < 0.1:
        data = random.choice(("[%s]\n", "%s\nnull\n", "%s\n[]\n", "%s\n5\n", "[%s")) % ",".join(records)
    return _finished(random, data)


def parquet_file(random: Random) -> bytes:
    """A Parquet file; in most of them some bytes of the footer are changed."""
    rows = random.randrange(1, 6)
    instants = [(_NOON_S + random.randrange(99)) * 1_000_000 for _ in range(rows)]
    columns = {
        "src": [random.choice(_TEXTS) for _ in range(rows)],
        "ts": pa.array(instants, pa.timestamp("us")),
        "n": list(range(rows)),
    }
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink, row_group_size=random.choice((2, 100)))
    data = bytearray(sink.getvalue())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for _ in range(random.choice((0, 1, 1, 1, 2, 4))):
        first = 0 if random.random() < 0.1 else footer
        data[random.randrange(first, len(data))] = random.randrange(256)
    return bytes(data)


FILES: Final[Mapping[str, Callable[[Random], bytes]]] = {
    "csv": csv_file,
    "json": json_file,
    "parquet": parquet_file,
}


def write_files(folder: Path, format: str, seeds: Sequence[int]) -> list[Path]:
    """Writes a file for each seed; some text files are compressed."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for seed in seeds:
        random = Random(seed)
        data = FILES[format](random)
        compressed = format != "parquet" and random.random() < 0.05
        paths.append(folder / f"{seed}.{format}{'.gz' if compressed else ''}")
        paths[-1].write_bytes(gzip.compress(data, mtime=0) if compressed else data)
    return paths


def _values(random: Random) -> list[str]:
    return [random.choice(_TEXTS), _instant(random), random.choice(("1", "-5", "", "12345678901"))]


def _instant(random: Random) -> str:
    second = random.randrange(60)
    forms = (
        f"2024-05-06T12:00:{second:02}Z",
        f"2024-05-06 12:00:{second:02}",
        f"2024-05-06T14:00:{second:02}.{second:06}+02:00",
        f"2024-05-06 12:00:{second:02}.{second:09}",
        f"2024-05-{second % 28 + 1:02}",
        f"1969-12-31T23:59:{second:02}.999999Z",
    )
    if random.random() < 0.02:
        odd = ("", "soon", "2024-05-06T25:00", "12:00", "20240506T120000", "2024-W19-1", "1714996800", "2024")
        return random.choice((*odd, " 2024-05-06", "+2024-05-06", "2024-05-06T12Z", "2024-5-6 1:2:3"))
    return random.choice(forms)


def _field(value: str, quoted: bool) -> str:
    if quoted or any(character in value for character in ',"\r\n'):
        return '"' + value.replace('"', '""') + '"'
    return value


def _object(random: Random) -> str:
    src, instant, number = _values(random)
    record: dict[str, Any] = {"src": src, "ts": instant, "n": int(number) if number else None}
    if random.random() < 0.3:
        more: tuple[Any, ...] = ([], {}, [{"ts": instant}], {"ts": 5, "a": [1, [2]]}, 1.5, True, "}\n{")
        record["more"] = random.choice(more)
    keys = list(record)
    random.shuffle(keys)
    indent = 1 if random.random() < 0.02 else None
    ordered = {key: record[key] for key in keys}
    text = json.dumps(ordered, ensure_ascii=random.random() < 0.5, indent=indent)
    if random.random() < 0.05:
        odd = ('"ts": "2030-01-01T00:00:00Z"', '"src": "\\ud800"', '"n": NaN', '"n": 01', '"TS": "x"', "")
        text = text[:-1] + ", " + random.choice(odd) + "}"
    return text


def _finished(random: Random, text: str) -> bytes:
    """The bytes, mostly with some damage."""
    data = text.encode()
    if random.random() < 0.1:
        data = b"\xef\xbb\xbf" + data
    for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
        place = random.randrange(len(data) + 1)
        kind = random.random()
        if kind < 0.6:
            data = data[:place] + random.choice(_NOISE) + data[place:]
        elif kind < 0.8:
            data = data[:place] + data[place + random.randrange(1, 20) :]
        elif kind < 0.9:
            data = data[:place] + data[max(0, place - random.randrange(1, 60)) :]
        else:
            data = data[:place] + bytes([random.randrange(256)]) + data[place + 1 :]
    return data
