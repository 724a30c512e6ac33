"""Reads a feed's data files like Spark does, but without Spark and with as little reading as possible."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from freshline.definitions.sections.feeds import Landing
from freshline.definitions.sections.name_timestamp import instant_in_name
from freshline.landing.csv_records import csv_records, csv_tables
from freshline.landing.json_records import json_records, json_tables
from freshline.landing.key_values import Comparison, KeyValues, key_values
from freshline.landing.parquet_process import ParquetProcess
from freshline.landing.records import FileRecords, UnreadableFile, first_line, is_of_the_machine
from freshline.landing.timestamps import instants_of_texts
from freshline.sql.columns import parse_columns


class RecordReader:
    """Reads the number of records of a feed's files, and their oldest and newest timestamps.

    If the file's name has the timestamp, those of the records are not read. The records are still counted,
    because Spark would silently read only a part of a damaged file.
    """

    def __init__(self, landing: Landing, process: ParquetProcess | None = None) -> None:
        assert landing.format is not None
        assert landing.schema is not None
        assert landing.timestamp is not None
        self._landing = landing
        self._columns = parse_columns(landing.schema)
        self._names = [column.name for column in self._columns]
        spelled = next(name for name in self._names if name.lower() == landing.timestamp.lower())
        self._timestamp = spelled if landing.name_timestamp is None else None
        assert process is not None or landing.format != "parquet"
        self._process = process

    def read(self, path: Path) -> FileRecords:
        """The records of a file; an `OSError` means a fault of the machine, not of the file."""
        if path.stat().st_size == 0:
            return FileRecords(0, None, None)
        pattern = self._landing.name_timestamp
        named_us = None if pattern is None else _instant_us(path, pattern)
        try:
            records = self._read(path)
        except (pa.ArrowException, OSError, csv.Error, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and is_of_the_machine(error):
                raise
            raise UnreadableFile(first_line(error)) from error
        return replace(records, newest_us=named_us) if records.count and named_us is not None else records

    def compared(self, path: Path, key: str, value: str) -> KeyValues | None:
        """The newest value of each key of a readable file; None if unknown."""
        landing = self._landing
        columns = {column.name.lower(): column for column in self._columns}
        assert landing.timestamp is not None
        names = (landing.timestamp, key, value)
        comparison = Comparison(*(columns[name.lower()] for name in names))
        try:
            if landing.format == "parquet":
                assert self._process is not None
                return self._process.compare(path, comparison)
            if landing.format == "csv":
                how = (landing.header, landing.encoding, landing.delimiter)
                tables = csv_tables(path, self._names, comparison.names, *how)
            else:
                tables = json_tables(path, comparison.fields())
            return key_values(tables, instants_of_texts, comparison)
        except (pa.ArrowException, UnreadableFile, csv.Error, UnicodeDecodeError):
            return None
        except OSError as error:
            if is_of_the_machine(error):
                raise
            return None

    def _read(self, path: Path) -> FileRecords:
        landing = self._landing
        if landing.format == "csv":
            how = (landing.header, landing.encoding, landing.delimiter)
            return csv_records(path, self._names, self._timestamp, *how)
        if landing.format == "json":
            return json_records(path, self._timestamp)
        assert self._process is not None
        return self._process.read(path, self._columns, self._timestamp)


def _instant_us(path: Path, pattern: str) -> int:
    instant_us = instant_in_name(pattern, path.as_posix())
    if instant_us is None:
        raise UnreadableFile(f"its name does not follow the pattern {pattern}")
    return instant_us
