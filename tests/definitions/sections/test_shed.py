"""What a feed may say of the rows that it sheds."""

from dataclasses import replace
from fractions import Fraction

import pytest

from complaints import with_feed
from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.load import loads
from freshline.definitions.sections.shed import Shed
from freshline.definitions.serial import from_record, to_record

PROJECT = """\
name: road
pools: {updates: {tracks: 1}}
feeds:
  cars: {path: cars, format: csv, schema: "ts timestamp, car string, speed int", timestamp: ts, period: 1s,
         rows: 100, shed: {most: 15, per: 500ms, value: "%s"}}
tables:
  cars: {feed: cars%s}
"""
TO_ONE = "Select each record once and its timestamp as it stands; a table that reads this one may do more."
LASTING = "Use only what the records say, such as their timestamps."


def complaints(value: str = "speed", select: str = "") -> list[str]:
    """What a run says, from the key on."""
    given = f', select: "{select}"' if select else ""
    try:
        check_runnable(loads(PROJECT % (value, given)))
    except (DefinitionErrors, InputError) as error:
        errors = error.errors if isinstance(error, DefinitionErrors) else [error]
        return [str(each).partition(": ")[2].partition(": ")[2] for each in errors]
    return []


def test_a_feed_that_sheds_is_read_written_and_read_again() -> None:
    warehouse = loads(PROJECT % ("speed * 2", ""))
    assert warehouse.feeds["cars"].shed == Shed(15, 500_000, "speed * 2")
    again = from_record(to_record(warehouse))
    placeless = replace(warehouse.feeds["cars"], place=again.feeds["cars"].place)
    assert again.feeds["cars"] == placeless


def test_no_more_rows_are_planned_with_than_are_loaded() -> None:
    feed = loads(PROJECT % ("speed", "")).feeds["cars"]
    assert feed.rows_loaded == 30
    assert replace(feed, rows=Fraction(7)).rows_loaded == 7
    assert replace(feed, rows=None).rows_loaded is None
    assert replace(feed, shed=None).rows_loaded == 100


@pytest.mark.parametrize(
    ("shed", "message"),
    [
        ("{}", None),
        (
            "{per: 1s, value: n}",
            ".shed: `most` is missing. Add how many records of a window are loaded, such as `most: 15`.",
        ),
        ("{most: 1, value: n}", ".shed: `per` is missing. Add how long a window is, such as `per: 1s`."),
        (
            "{most: 1, per: 1s}",
            ".shed: `value` is missing. Add what says which records count most, such as `value: speed`.",
        ),
        (
            "{most: 0, per: 1s, value: n}",
            ".shed.most: 0 is not a whole number from 1 to 1000000000. "
            "Write how many records of a window are loaded.",
        ),
        (
            "{most: 1, per: 0s, value: n}",
            ".shed.per: the duration is zero. Give one above zero, such as '5 minutes'.",
        ),
        (
            "{most: 1, per: 1s, value: n, least: 1}",
            ".shed: unknown key `least`. Perhaps `most` is meant.",
        ),
    ],
)
def test_a_wrong_shed_is_refused(shed: str, message: str | None) -> None:
    found = with_feed(f"{{period: 1s, shed: {shed}}}")
    if message is None:
        assert len(found) == 3
    else:
        assert found[0].startswith(f"freshline.yml:5: feeds.extra{message.partition(' Perhaps')[0]}")


def test_a_feed_sheds_by_its_records_own_times() -> None:
    assert with_feed("{arrival: continuous, shed: {most: 1, per: 1s, value: n}}") == [
        "freshline.yml:5: feeds.extra.shed: it has no effect on a continuous feed. "
        "Remove it, or set `arrival: files`."
    ]
    assert with_feed(
        '{period: 1s, name_timestamp: "%Y%m%d%H%M%S.csv", shed: {most: 1, per: 1s, value: n}}'
    ) == [
        "freshline.yml:5: feeds.extra.shed: it needs the timestamps of the records, which are not read "
        "with `name_timestamp`. Remove it, or `name_timestamp`."
    ]


@pytest.mark.parametrize(
    "value", ["speed", "speed * 2", "CASE WHEN car = 'x' THEN 1 END", "-speed", "`speed`"]
)
def test_a_value_is_an_expression_of_a_record(value: str) -> None:
    assert complaints(value) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("sped", "there is no column `sped`. The columns are ts, car, speed."),
        ("speed, car", "'speed, car' is not one expression."),
        ("speed FROM cars", "'speed FROM cars' is not one expression."),
        ("speed AS s", "'speed AS s' is not one expression."),
        ("max(speed)", "`max` stands in the value."),
        ("sum(speed) OVER ()", "it has a window function (OVER)."),
        ("(SELECT 1)", "it has a query within the query."),
        ("explode(array(1))", "`explode` makes several rows of one."),
        ("rand()", f"`rand` gives something else each time it is asked. {LASTING}"),
        ("speed + unix_seconds(now())", None),
        ("*", None),
        ("speed +", None),
        ("", None),
        ("'", None),
        ("speed; DROP TABLE x", None),
    ],
)
def test_a_value_that_is_none_is_refused(value: str, message: str | None) -> None:
    found = complaints(value)
    assert len(found) == 1
    assert message is None or found[0].startswith(message)


def test_a_select_must_leave_a_way_to_count_what_is_loaded() -> None:
    for select in (
        "SELECT * FROM cars",
        "SELECT c.ts, upper(c.car) AS car FROM cars AS c",
        "SELECT ts, speed AS s FROM cars",
        "SELECT * EXCEPT (speed) FROM cars",
    ):
        assert complaints(select=select) == []
    for select in (
        "SELECT * FROM cars WHERE speed > 1",
        "SELECT ts, explode(split(car, ',')) AS w FROM cars",
    ):
        assert complaints(select=select) == [f"its feed `cars` sheds rows by what is loaded. {TO_ONE}"]
    another = f"its feed `cars` sheds rows by their timestamps, and `ts` is another. {TO_ONE}"
    assert another in complaints(select="SELECT ts + INTERVAL 1 SECOND AS ts FROM cars")
    assert complaints(select="SELECT ts, input_file_name() AS file FROM cars") == [
        "rows that are sorted by value no longer know their file. "
        "Remove `input_file_name`, or the feed's `shed`."
    ]
