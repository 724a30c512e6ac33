"""Reads the records of a file of JSON lines, one object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.json as pajson

from freshline.landing.lines import LineBlock, blocks
from freshline.landing.records import FileRecords, UnreadableFile
from freshline.landing.timestamps import span_of_texts, union

# A name that no record has, for reading without columns.
_NOBODY: Final = "\x00"
_SPACE: Final = b" \t"
_DECODER: Final = json.JSONDecoder()


def json_records(path: Path, timestamp: str | None) -> FileRecords:
    """The records of a file. Without the name of a timestamp they are only counted."""
    count, spans = 0, []
    for table in json_tables(path, pa.schema([(timestamp or _NOBODY, pa.string())])):
        count += table.num_rows
        if timestamp is not None:
            spans.append(span_of_texts(table.column(0)))
    return FileRecords(count, *(union(spans) or (None, None)))


def json_tables(path: Path, fields: pa.Schema) -> Iterator[pa.Table]:
    """Yields some of a file's fields, the timestamp first, one part of the file at a time."""
    for block in blocks(path, "utf-8"):
        lines, data = _objects(block)
        if data:
            yield _table(block, lines, data, fields)


def _objects(block: LineBlock) -> tuple[int, bytes]:
    """The lines that are not blank. Each must begin with `{` and end with `}`, so none continues."""
    data = block.data
    if data.count(b"}\n{") == block.lines - 1 and data.startswith(b"{") and data.endswith(b"}\n"):
        return block.lines, data
    lines = [line.strip(_SPACE) for line in data.split(b"\n")]
    for number, line in enumerate(lines, start=block.first):
        if line and not (line.startswith(b"{") and line.endswith(b"}")):
            raise UnreadableFile(f"line {number} {_fault(line) or 'is not an object'}")
    filled = [line + b"\n" for line in lines if line]
    return len(filled), b"".join(filled)


def _table(block: LineBlock, lines: int, data: bytes, fields: pa.Schema) -> pa.Table:
    """The values of the fields. Spark reads one record per line and silently ignores the rest of the line."""
    try:
        table = pajson.read_json(
            pa.BufferReader(data),
            read_options=pajson.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pajson.ParseOptions(explicit_schema=fields, unexpected_field_behavior="ignore"),
        )
        if table.num_rows == lines:
            return table
        found = f"its lines from {block.first} on have {table.num_rows} records, and not one each"
    except pa.ArrowInvalid as error:
        found = str(error)
    for number, line in enumerate(block.data.split(b"\n"), start=block.first):
        fault = _fault(line.strip(_SPACE), fields.names[0])
        if fault is not None:
            raise UnreadableFile(f"line {number} {fault}")
    raise UnreadableFile(found)


def _fault(line: bytes, timestamp: str = _NOBODY) -> str | None:
    """What is wrong with a line, in words for people; None if it is blank or Python accepts it."""
    if not line:
        return None
    text = line.decode()
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        return f"is not JSON: {error.msg} at character {error.pos + 1}"
    except (RecursionError, ValueError):  # nested too deeply, or a number with thousands of digits
        return None
    if end < len(text):
        return f"goes on after its first JSON value: {text[end : end + 40]!r}"
    if not isinstance(value, dict):
        return "is not an object"
    instant = value.get(timestamp)
    if not isinstance(instant, str | None):
        return f"has {json.dumps(instant)[:40]} for a timestamp, not a text"
    return None
