"""Units of time are written in capitals, and nothing else is."""

import pytest

from freshline.sql.time_units import units_in_capitals


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT date_trunc('minute', ts) FROM t", "SELECT date_trunc('MINUTE', ts) FROM t"),
        (
            "SELECT trunc(date_trunc('mon', ts), 'year') FROM t",
            "SELECT trunc(date_trunc('MON', ts), 'YEAR') FROM t",
        ),
        ("SELECT 'minute', trunc FROM t", "SELECT 'minute', trunc FROM t"),
        ("SELECT DATE_TRUNC(unit, ts) FROM t", "SELECT DATE_TRUNC(unit, ts) FROM t"),
        ("SELECT \"date_trunc('minute', ts)\" FROM t", "SELECT \"date_trunc('minute', ts)\" FROM t"),
    ],
)
def test_units_are_in_capitals(sql: str, expected: str) -> None:
    assert units_in_capitals(sql) == expected
