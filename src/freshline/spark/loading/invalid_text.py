"""Invalid texts: a string column of a Parquet file may have any bytes, and Spark passes them on."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from freshline.spark.session.quoting import quoted

NO_TEXT: Final = "bytes that are not text"


@lru_cache(maxsize=1_024)
def checked_columns(schema: str) -> tuple[str, ...] | None:
    """Expressions for all columns of a schema that fail if a text is not UTF-8; None if it has no texts.

    Other programs could not read a table with such bytes: to Delta, Arrow and Python a string is UTF-8.
    """
    declared, conditions = _declared(schema), text_conditions(schema)
    if not conditions:
        return None
    return tuple(
        _checked(field.name, field.dataType, conditions[field.name])
        if field.name in conditions
        else quoted(field.name)
        for field in declared.fields
    )


def text_conditions(schema: str) -> dict[str, str]:
    """By column with texts: the condition that all of them are valid."""
    found = {
        field.name: _is_text(quoted(field.name), field.dataType, 0) for field in _declared(schema).fields
    }
    return {name: condition for name, condition in found.items() if condition is not None}


def _declared(schema: str) -> StructType:
    declared = DataType.fromDDL(schema)
    assert isinstance(declared, StructType)
    return declared


def _checked(name: str, kind: DataType, condition: str) -> str:
    column = quoted(name)
    if isinstance(kind, StringType):
        return f"validate_utf8({column}) AS {column}"  # half the cost of the condition
    says = f"column {name} has {NO_TEXT}".replace("\\", "\\\\").replace("'", "\\'")
    return f"if({condition}, {column}, raise_error('{says}')) AS {column}"


def _is_text(value: str, kind: DataType, depth: int) -> str | None:
    """The condition that all texts in a value are UTF-8 or null; None if it has no texts."""
    if isinstance(kind, StringType):
        return f"ifnull(is_valid_utf8({value}), true)"
    if isinstance(kind, ArrayType):
        return _all(value, kind.elementType, depth)
    if isinstance(kind, MapType):
        parts = [_all(f"map_keys({value})", kind.keyType, depth)]
        parts.append(_all(f"map_values({value})", kind.valueType, depth))
    elif isinstance(kind, StructType):
        fields = kind.fields
        parts = [_is_text(f"{value}.{quoted(field.name)}", field.dataType, depth) for field in fields]
    else:
        return None
    found = [part for part in parts if part is not None]
    return f"({' AND '.join(found)})" if found else None


def _all(values: str, kind: DataType, depth: int) -> str | None:
    each = f"each_{depth}"
    condition = _is_text(each, kind, depth + 1)
    return None if condition is None else f"ifnull(forall({values}, {each} -> {condition}), true)"
