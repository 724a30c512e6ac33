"""The slice of each row of a table with `slices`, a number below 256.

With a key, rows whose keys are equal in a join are in the same slice, in every table: a slice joins only with
itself. Rows without a key join nothing; their slice is random, as in a table without a key. Random means a
hash that a retry computes again: of a record's place in its files, or of a derived row's values, since Spark
gives derived rows in another order each time.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from freshline.base.errors import InputError
from freshline.definitions.sections.stored import StoredDefinition
from freshline.spark.session.quoting import quoted
from freshline.sql.columns import RESERVED_COLUMNS, SLICE_COLUMN
from freshline.sql.slices import SLICES

SLICE_FIELD = StructField(SLICE_COLUMN, ShortType())
# Digits before the point of 1, 2, 4 and 8-byte integers in Spark's comparison with decimals.
_INTEGER_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_DECIMAL_DIGITS = 38
_HASHED_AS_THEY_ARE = (BinaryType, BooleanType, DateType, TimestampNTZType, TimestampType)


def check_slices(table: StoredDefinition, columns: StructType) -> None:
    """Rejects a missing key, a key that Spark hashes and compares differently, and outliers of other types
    than numbers."""
    _check_outliers(table, columns)
    if table.slices is None or table.slices.by is None:
        return
    kind = _key_type(table.slices.by, columns)
    listed = ", ".join(columns.names)
    if kind is None:
        what = f"table {table.name} has no column {table.slices.by} to slice by (it has {listed})"
        raise InputError(what, "Name one of its columns", table.place)
    if _key(table.slices.by, kind) is None:
        what = f"table {table.name} cannot be sliced by {table.slices.by}, which is {kind.simpleString()}"
        raise InputError(what, "Name a column of numbers, texts, instants or days", table.place)


def outliers_of(table: StoredDefinition) -> str | None:
    """The column whose largest values are in no slice."""
    return None if table.slices is None else table.slices.outliers


def _check_outliers(table: StoredDefinition, columns: StructType) -> None:
    name = outliers_of(table)
    if name is None:
        return
    kind = _key_type(name, columns)
    if not isinstance(kind, NumericType):
        is_what = "which it does not have" if kind is None else f"which is {kind.simpleString()}"
        what = f"table {table.name} cannot have outliers by {name}, {is_what}"
        raise InputError(what, "Name a column of numbers", table.place)


def slice_column(table: StoredDefinition, columns: StructType) -> str | None:
    """The expression of a row's slice, with its name; None if the table has no slices."""
    if table.slices is None:
        return None
    number, by = _at_random(table, columns), table.slices.by
    kind = None if by is None else _key_type(by, columns)
    if by is not None and kind is not None:
        number = f"if({quoted(by)} IS NULL, {number}, {_key(by, kind)})"
    return f"CAST(pmod({number}, {SLICES}) AS smallint) AS {SLICE_COLUMN}"


def dealt(rows: DataFrame, column: str | None) -> DataFrame:
    """The rows with their slices, computed by that expression."""
    return rows if column is None else rows.selectExpr("*", column)


def slice_together(one: DataType, other: DataType) -> bool:
    """Whether values of two types have the same hash if they are equal in Spark's joins."""
    exact = (_digits(one), _digits(other))
    if exact[0] is not None and exact[1] is not None:
        # With more digits Spark rounds one of the two before it compares them.
        return max(exact[0][0], exact[1][0]) + max(exact[0][1], exact[1][1]) <= _DECIMAL_DIGITS
    if isinstance(one, FractionalType) and isinstance(other, FractionalType):
        return exact == (None, None)
    return one == other


def _key_type(by: str, columns: StructType) -> DataType | None:
    return next((field.dataType for field in columns.fields if field.name.lower() == by.lower()), None)


def _key(by: str, kind: DataType) -> str | None:
    """A key's hash; None for types without one."""
    column = quoted(by)
    if isinstance(kind, IntegralType):
        return f"xxhash64(CAST({column} AS bigint), CAST({column} AS double))"
    if isinstance(kind, DecimalType):
        # The same hash as for an integer of that value. It needs both parts: the first has no fraction, and
        # the second does not distinguish large neighbouring integers.
        return f"xxhash64(ifnull(try_cast({column} AS bigint), 0L), CAST({column} AS double))"
    if isinstance(kind, FractionalType):
        return f"xxhash64(CAST({column} AS double))"
    if isinstance(kind, StringType):
        return f"xxhash64({column})" if kind == StringType() else None  # collations equate texts
    return f"xxhash64({column})" if isinstance(kind, _HASHED_AS_THEY_ARE) else None


def _at_random(table: StoredDefinition, columns: StructType) -> str:
    if table.feed is not None:
        # The place alone would put the first record of every file into the same slice.
        assert table.timestamp is not None
        return f"xxhash64({quoted(table.timestamp)}, monotonically_increasing_id())"
    hashed = [
        quoted(field.name)
        for field in columns.fields
        if field.name not in RESERVED_COLUMNS and _is_hashed(field.dataType)
    ]
    return f"xxhash64({', '.join(hashed)})"


def _is_hashed(kind: DataType) -> bool:
    """Whether Spark can hash the type. It cannot hash a map, which has no order."""
    if isinstance(kind, StructType):
        return all(_is_hashed(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _is_hashed(kind.elementType)
    return not isinstance(kind, MapType | VariantType)


def _digits(kind: DataType) -> tuple[int, int] | None:
    """The most digits before and after the point; None if the type is not an exact number."""
    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale, kind.scale
    digits = _INTEGER_DIGITS.get(kind.simpleString())
    return None if digits is None else (digits, 0)
