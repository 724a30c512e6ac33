"""Reads the records of a CSV file, one per line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv as pacsv

from freshline.landing.lines import LineBlock, blocks
from freshline.landing.records import FileRecords, UnreadableFile
from freshline.landing.timestamps import span_of_texts, union

# Spark ignores a line that has nothing else.
_BLANK: Final = bytes(range(33))
_SMALL: Final = 64 << 10
_NOT_PLAIN: Final = (b'"', b"\r")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BEGINNING: Final = 1_000  # most blocks have something there


def csv_records(
    path: Path, names: Sequence[str], timestamp: str | None, header: bool, encoding: str, delimiter: str = ","
) -> FileRecords:
    """The records of a file with these columns. Without the name of a timestamp they are only counted."""
    count, spans = 0, []
    for table in csv_tables(path, names, [timestamp or names[0]], header, encoding, delimiter):
        count += table.num_rows
        if timestamp is not None:
            spans.append(span_of_texts(table.column(0)))
    return FileRecords(count, *(union(spans) or (None, None)))


def csv_tables(
    path: Path,
    names: Sequence[str],
    columns: Sequence[str],
    header: bool,
    encoding: str,
    delimiter: str = ",",
) -> Iterator[pa.Table]:
    """Yields some of a file's columns as texts, one part of the file at a time."""
    for block in _bodies(path, names, encoding, delimiter) if header else blocks(path, encoding):
        table = _table(_without_blanks(block) if delimiter == "\t" else block, names, columns, delimiter)
        if table is not None:
            yield table


def _without_blanks(block: LineBlock) -> LineBlock:
    """The block with empty lines for those that have only blanks: Arrow would take tabs as empty values."""
    lines = [line if line.strip(_BLANK) else b"" for line in block.data.split(b"\n")]
    return LineBlock(block.first, block.lines, b"\n".join(lines))


def _bodies(path: Path, names: Sequence[str], encoding: str, delimiter: str) -> Iterator[LineBlock]:
    """Yields the lines below the header, which is the first line that is not blank."""
    titled = False
    for first, lines, data in blocks(path, encoding):
        while lines and not titled:
            line, _, data = data.partition(b"\n")
            first, lines = first + 1, lines - 1
            if line.strip(_BLANK):
                _check_titles(line.decode(), names, delimiter)
                titled = True
        yield LineBlock(first, lines, data)


def _check_titles(line: str, names: Sequence[str], delimiter: str) -> None:
    """Checks the header: Spark reads csv by position, so other titles mean other columns."""
    titles = next(csv.reader([line], delimiter=delimiter))
    if [title.lower() for title in titles] != [name.lower() for name in names]:
        raise UnreadableFile(f"its header is {','.join(titles)[:200]}, not {','.join(names)[:200]}")


def _plain(block: LineBlock, names: Sequence[str], columns: Sequence[str], delimiter: str) -> pa.Table | None:
    """The table of a small block that can be read in only one way; None for all others.

    Arrow starts other threads even for little data. On a busy machine each of many small files would wait for
    such a thread.
    """
    data = block.data
    if len(data) > _SMALL or any(mark in data for mark in _NOT_PLAIN) or data.startswith(_BYTE_ORDER_MARK):
        return None
    lines = data.removesuffix(b"\n").split(b"\n")
    rows = [line.split(delimiter.encode()) for line in lines]
    if len(rows) != block.lines or not all(lines) or any(len(row) != len(names) for row in rows):
        return None
    places = {column: list(names).index(column) for column in columns}
    try:
        texts = {column: [row[at].decode() for row in rows] for column, at in places.items()}
    except UnicodeDecodeError:
        return None
    return pa.table({column: pa.array(values, pa.string()) for column, values in texts.items()})


def _table(block: LineBlock, names: Sequence[str], columns: Sequence[str], delimiter: str) -> pa.Table | None:
    """The columns' texts, one per line: unlike Spark, Arrow accepts records of several lines."""
    if not (block.data[:_BEGINNING].strip(_BLANK) or block.data.strip(_BLANK)):
        return None
    plain = _plain(block, names, columns, delimiter)
    if plain is not None:
        return plain
    table = pacsv.read_csv(
        pa.BufferReader(block.data),
        read_options=pacsv.ReadOptions(
            use_threads=False, block_size=len(block.data) + 1, column_names=list(names)
        ),
        parse_options=pacsv.ParseOptions(delimiter=delimiter),
        convert_options=pacsv.ConvertOptions(
            include_columns=list(columns), column_types=dict.fromkeys(columns, pa.string())
        ),
    )
    if table.num_rows == block.lines:
        return table
    lines = block.data.split(b"\n")
    filled = sum(1 for line in lines if line.strip(_BLANK))
    if table.num_rows == filled:
        return table
    for number, line in enumerate(lines, start=block.first):
        if line.count(b'"') % 2:
            raise UnreadableFile(f"line {number} has a quote that is not closed: a record is one line")
    raise UnreadableFile(f"of its {filled} lines from {block.first} on {table.num_rows} are records")
