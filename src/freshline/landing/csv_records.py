"""The records of a CSV file, one a line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv as pacsv

from freshline.landing.lines import Block, blocks
from freshline.landing.records import Records, UnreadableFile
from freshline.landing.timestamps import span_of_texts, union

# A line that has nothing else is none to Spark.
_BLANK: Final = bytes(range(33))


def csv_records(
    path: Path, names: Sequence[str], timestamp: str | None, header: bool, encoding: str
) -> Records:
    """The records of a file with these columns. Without a timestamp's name they are only counted."""
    count, spans = 0, []
    for block in _bodies(path, names, encoding) if header else blocks(path, encoding):
        lines = _lines(block.data)
        if lines:
            values = _values(block, lines, names, timestamp or names[0])
            count += lines
            if timestamp is not None:
                spans.append(span_of_texts(values))
    return Records(count, *(union(spans) or (None, None)))


def _lines(data: bytes) -> int:
    if b"\n\n" not in data and not data.startswith(b"\n"):
        return data.count(b"\n")  # or fewer: the others are blank, and Arrow takes them for records
    return sum(1 for line in data.split(b"\n") if line.strip(_BLANK))


def _bodies(path: Path, names: Sequence[str], encoding: str) -> Iterator[Block]:
    """The lines below the header, which is the first that is not blank."""
    titled = False
    for block in blocks(path, encoding):
        number, data = block
        while data and not titled:
            line, _, data = data.partition(b"\n")
            number += 1
            if line.strip(_BLANK):
                _check_titles(line.decode(), names)
                titled = True
        yield Block(number, data)


def _check_titles(line: str, names: Sequence[str]) -> None:
    """Spark reads csv by position: other titles mean other columns."""
    titles = next(csv.reader([line]))
    if [title.lower() for title in titles] != [name.lower() for name in names]:
        raise UnreadableFile(f"its header is {','.join(titles)[:200]}, not {','.join(names)[:200]}")


def _values(block: Block, lines: int, names: Sequence[str], column: str) -> Any:
    """A column's texts, of which there must be one a line: others than Spark know records of several."""
    table = pacsv.read_csv(
        pa.BufferReader(block.data),
        read_options=pacsv.ReadOptions(
            use_threads=False, block_size=len(block.data) + 1, column_names=list(names)
        ),
        convert_options=pacsv.ConvertOptions(include_columns=[column], column_types={column: pa.string()}),
    )
    if table.num_rows == lines:
        return table.column(0)
    for number, line in enumerate(block.data.split(b"\n"), start=block.first):
        if line.count(b'"') % 2:
            raise UnreadableFile(f"line {number} has a quote that is not closed: a record is one line")
    raise UnreadableFile(
        f"its lines from {block.first} on are {lines}, and the records in them {table.num_rows}"
    )
