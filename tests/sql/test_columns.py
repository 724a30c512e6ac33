"""A feed's schema, read without Spark."""

import pytest

from freshline.base.errors import InputError
from freshline.sql.columns import Column, parse_columns

NAMES_AND_TYPES = "Write names and Spark SQL types, such as `ts timestamp, src string, bytes long`."


def test_names_and_types_are_read_as_spark_reads_them() -> None:
    assert parse_columns(
        "ts TIMESTAMP NOT NULL COMMENT 'when', n long, `a b` array<int>, l timestamp_ltz"
    ) == (
        Column("ts", is_timestamp=True, is_nested=False),
        Column("n", is_timestamp=False, is_nested=False, integer_bits=64, number="integer"),
        Column("a b", is_timestamp=False, is_nested=True),
        Column("l", is_timestamp=True, is_nested=False),
    )


@pytest.mark.parametrize("type_name", ["timestamp_ntz", "date", "string", "bigint", "time"])
def test_no_other_type_is_a_timestamp(type_name: str) -> None:
    assert [column.is_timestamp for column in parse_columns(f"ts {type_name}")] == [False]


@pytest.mark.parametrize(
    "schema", ["", "ts timestmp", "a int) USING csv --", "a int) AS SELECT (1", "a int; b int", "a 'int"]
)
def test_what_is_not_a_list_of_columns_is_refused(schema: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_columns(schema)
    assert str(raised.value) == f"{schema!r} is not a list of columns and types. {NAMES_AND_TYPES}"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("ts timestamp, n", f"the column `n` has no type that Spark knows. {NAMES_AND_TYPES}"),
        ("n int, N long", "the column `N` is declared twice. Remove one of the two."),
        ("_late boolean", "the column `_late` is one that Freshline adds itself. Rename it."),
    ],
)
def test_a_column_that_cannot_be_loaded_is_refused(schema: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_columns(schema)
    assert str(raised.value) == message
