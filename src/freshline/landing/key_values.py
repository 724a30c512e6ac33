"""The newest value of each key in a data file, by which tables with `discard` compare files.

Nothing is guessed: a file with a record without a key, or with a number in an unusual form, is *odd*, and is
always loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshline.sql.columns import Column

# A file with more keys is always loaded, because comparing it would take too long.
KEYS_MAX: Final = 10_000
_DIGEST_BYTES: Final = 16
_INTEGER: Final = r"^[+-]?[0-9]{1,19}$"
_PLAIN: Final = r"^[+-]?[0-9]{1,40}(\.[0-9]{0,40})?([eE][+-]?[0-9]{1,3})?$"

Value = int | float | Decimal


class NewestValue(NamedTuple):
    """The newest value of a key (None if it is not a finite number) and the time of its record."""

    at_us: int
    value: Value | None


@dataclass(slots=True)
class KeyValues:
    """The newest value of each key by the key's digest, so that long keys take little memory."""

    newest: dict[bytes, NewestValue] = field(default_factory=dict)
    odd: bool = False  # something in it cannot be compared

    def take(self, key: bytes, found: NewestValue) -> None:
        """Keeps the newer value; of two with the same instant, the later one."""
        before = self.newest.get(key)
        if before is None or before.at_us <= found.at_us:
            self.newest[key] = found


class Comparison(NamedTuple):
    """The columns of a feed by which its files are compared with stored rows."""

    timestamp: Column
    key: Column
    value: Column

    @property
    def names(self) -> list[str]:
        return [self.timestamp.name, self.key.name, self.value.name]

    def fields(self) -> pa.Schema:
        """The schema for reading JSON; values of other types are errors there."""
        kinds = pa.string(), arrow_type(self.key), arrow_type(self.value)
        return pa.schema(list(zip(self.names, kinds, strict=True)))


def key_values(tables: Iterable[pa.Table], instants: Any, comparison: Comparison) -> KeyValues | None:
    """The newest values in the parts of a file, each with the three columns; None if it has too many keys.

    `instants` converts the timestamp column to microseconds.
    """
    found = KeyValues()
    for table in tables:
        if table.num_rows:
            at_us, keys, values = table.columns
            keys, values = _keys(found, keys, comparison.key), _checked(found, values, comparison.value)
            encoded = keys.combine_chunks().dictionary_encode()
            if len(encoded.dictionary) > KEYS_MAX:
                return None
            _take(found, instants(at_us).to_numpy(), encoded, values, comparison.value)
            if len(found.newest) > KEYS_MAX:
                return None
    return found


def _take(found: KeyValues, at_us: Any, keys: Any, values: Any, column: Column) -> None:
    """Takes the last of the newest records of each key; `keys` are dictionary-encoded."""
    codes = keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    order = np.argsort(at_us, kind="stable")
    order = order[codes[order] >= 0]
    last = np.zeros(len(keys.dictionary), dtype=np.int64)
    last[codes[order]] = order  # the last record of each key wins
    chosen = values.take(pa.array(last)).to_pylist()
    for key, place, value in zip(keys.dictionary.to_pylist(), last.tolist(), chosen, strict=True):
        found.take(digest(key), NewestValue(int(at_us[place]), number(value, column)))


def _keys(found: KeyValues, keys: Any, column: Column) -> Any:
    if pa.types.is_string(keys.type) and column.number is not None:
        found.odd = found.odd or not _all_match(keys, _INTEGER)
        keys = pc.if_else(pc.match_substring_regex(keys, _INTEGER), keys, None).cast(pa.int64())
    keys = keys.cast(arrow_type(column))
    if column.is_text:
        # Spark reads an empty text in a CSV file as null.
        keys = pc.if_else(pc.equal(keys, ""), None, keys)
    found.odd = found.odd or keys.null_count > 0
    return keys


def _checked(found: KeyValues, values: Any, column: Column) -> Any:
    """The values; texts stay texts, because few are needed as numbers. Unusual ones make the file odd."""
    if pa.types.is_string(values.type):
        found.odd = found.odd or not _all_match(values, _INTEGER if column.number == "integer" else _PLAIN)
        return values
    values = values.cast(arrow_type(column))
    found.odd = found.odd or values.null_count > 0
    return values


def _all_match(texts: Any, pattern: str) -> bool:
    return texts.null_count == 0 and bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def number(value: Any, column: Column) -> Value | None:
    """A value as it will be stored; None if it is not a finite number, or unknown."""
    if value is None or (isinstance(value, str) and not re.fullmatch(_PLAIN, value)):
        return None
    if column.number == "integer":
        if isinstance(value, str) and not re.fullmatch(_INTEGER, value):
            return None
        whole, bits = int(value), column.integer_bits or 64
        return whole if -(1 << bits - 1) <= whole < 1 << bits - 1 else None
    if column.number == "decimal":
        exact = Decimal(value)
        return exact if _fits(exact, column) else None
    with np.errstate(over="ignore"):  # overflow gives infinity, which is not finite
        rounded = float(np.float32(value)) if column.number == "float" else float(value)
    return rounded if math.isfinite(rounded) else None


def _fits(value: Decimal, column: Column) -> bool:
    """Whether it fits the digits of the column; otherwise Spark stores another value."""
    assert column.digits is not None
    precision, scale = column.digits
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return exponent >= -scale and len(digits) + exponent <= precision - scale


def arrow_type(column: Column) -> Any:
    """The Arrow type of a column."""
    if column.is_text:
        return pa.string()
    kinds: Mapping[str | None, Any] = {"integer": pa.int64(), "float": pa.float32(), "double": pa.float64()}
    if column.number == "decimal":
        assert column.digits is not None
        return pa.decimal128(*column.digits)
    return kinds[column.number]


def digest(key: str | int) -> bytes:
    """A short digest of a key of any length."""
    return blake2b(str(key).encode(), digest_size=_DIGEST_BYTES).digest()
