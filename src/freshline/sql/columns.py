"""The columns that a feed's `schema` declares, read without Spark."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from freshline.base.errors import InputError
from freshline.sql.dialect import SPARK

LATE_COLUMN: Final = "_late"  # says whether a row of a base table came late
SLICE_COLUMN: Final = "_slice"  # in a table that is kept in slices: the slice of a row
RESERVED_COLUMNS: Final = (LATE_COLUMN, SLICE_COLUMN)

_REMEDY: Final = "Write names and Spark SQL types, such as `ts timestamp, src string, bytes long`"
_TIMESTAMP: Final = frozenset({exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ})
_NESTED: Final = frozenset({exp.DataType.Type.ARRAY, exp.DataType.Type.MAP, exp.DataType.Type.STRUCT})
_BITS: Final = {
    exp.DataType.Type.TINYINT: 8,
    exp.DataType.Type.SMALLINT: 16,
    exp.DataType.Type.INT: 32,
    exp.DataType.Type.BIGINT: 64,
}
Number = Literal["integer", "float", "double", "decimal"]
_NUMBERS: Final[dict[Any, Number]] = {
    **dict.fromkeys(_BITS, "integer"),
    exp.DataType.Type.FLOAT: "float",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.DECIMAL: "decimal",
}
_DECIMAL_DIGITS: Final = (10, 0)  # the default of `decimal`


class Column(NamedTuple):
    """The name of a column, and the facts about its type that are needed here."""

    name: str
    is_timestamp: bool
    is_nested: bool
    integer_bits: int | None = None  # None unless it is an integer
    is_text: bool = False
    number: Number | None = None  # None unless it is a number
    digits: tuple[int, int] | None = None  # for a decimal: the total, and those after the point


@lru_cache(maxsize=1_024)
def parse_columns(schema: str) -> tuple[Column, ...]:
    """The columns of a schema such as `ts timestamp, src string`.

    >>> [column.name for column in parse_columns("ts timestamp, src string")]
    ['ts', 'src']
    """
    definitions = _definitions(schema)
    columns: dict[str, Column] = {}
    for definition in definitions:
        kind = definition.kind if isinstance(definition, exp.ColumnDef) else None
        if not isinstance(kind, exp.DataType):
            raise InputError(f"the column `{definition.name}` has no type that Spark knows", _REMEDY)
        folded = definition.name.lower()  # Spark ignores case
        if folded in columns:
            raise InputError(f"the column `{definition.name}` is declared twice", "Remove one of the two")
        if folded in RESERVED_COLUMNS:
            raise InputError(f"the column `{folded}` is one that Freshline adds itself", "Rename it")
        columns[folded] = Column(
            definition.name,
            kind.this in _TIMESTAMP,
            kind.this in _NESTED,
            _BITS.get(kind.this),
            kind.this == exp.DataType.Type.TEXT,
            _NUMBERS.get(kind.this),
            _digits(kind) if kind.this == exp.DataType.Type.DECIMAL else None,
        )
    return tuple(columns.values())


def _digits(kind: exp.DataType) -> tuple[int, int]:
    given = [int(parameter.name) for parameter in kind.expressions if parameter.name.isdecimal()]
    return (given[0], given[1] if len(given) > 1 else 0) if given else _DECIMAL_DIGITS


def _definitions(schema: str) -> list[exp.Expr]:
    try:
        statements = SPARK.parse(f"CREATE TABLE t ({schema}\n)")
    except (ParseError, TokenError):
        raise InputError(f"{schema!r} is not a list of columns and types", _REMEDY) from None
    except RecursionError:
        raise InputError("its types are nested too deeply", "Declare plainer ones") from None
    create = statements[0] if len(statements) == 1 else None
    body = create.this if isinstance(create, exp.Create) else None
    # Other clauses of a CREATE TABLE would be ignored, so they are errors.
    is_plain = create is not None and not create.args.get("properties") and not create.args.get("expression")
    if not isinstance(body, exp.Schema) or not body.expressions or not is_plain:
        raise InputError(f"{schema!r} is not a list of columns and types", _REMEDY)
    return body.expressions
