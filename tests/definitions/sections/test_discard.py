"""What a table may say of files that need not be loaded."""

from dataclasses import replace

import pytest

from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.load import loads
from freshline.definitions.sections.discard import Discard, discard_columns
from freshline.definitions.serial import from_record, to_record

PROJECT = """\
name: plant
pools:
  main: {tracks: 1, policy: rds-quota}
  other: {tracks: 1}
  crowd: {tracks: 1, policy: admit-all}
classes: {operators: {error: 0.3, pool: main}, crowd: {error: 0.3, pool: crowd}}
feeds:
  readings: {path: a, format: csv, timestamp: ts, period: 1s,
             schema: "ts timestamp, id int, name string, v double, d decimal(9, 2), day date"%s}
tables:
  t: {feed: readings, pool: %s, discard: %s%s}
"""
RDS = "`policy: rds-edf` or `rds-hef` or `rds-quota`"
AS_IT_STANDS = "Select the feed's column as it stands, or remove `discard`."


def complaints(discard: str, pool: str = "main", more: str = "", feed: str = "") -> list[str]:
    """What is said, from the key on."""
    try:
        check_runnable(loads(PROJECT % (feed, pool, discard, more)))
    except (DefinitionErrors, InputError) as error:
        errors = error.errors if isinstance(error, DefinitionErrors) else [error]
        return [str(each).partition("tables.t.")[2] or str(each) for each in errors]
    return []


def test_a_discard_is_read_written_and_read_again() -> None:
    warehouse = loads(PROJECT % ("", "main", "{key: id, value: v}", ""))
    assert warehouse.tables["t"].discard == Discard("id", "v")
    again = from_record(to_record(warehouse)).tables["t"]
    assert again == replace(warehouse.tables["t"], place=again.place)


@pytest.mark.parametrize(
    ("key", "value"), [("id", "v"), ("id", "d"), ("name", "v"), ("name", "d"), ("NAME", "id")]
)
def test_keys_are_texts_or_whole_numbers_and_values_are_numbers(key: str, value: str) -> None:
    assert complaints(f"{{key: {key}, value: {value}}}") == []


@pytest.mark.parametrize(
    ("discard", "messages"),
    [
        (
            "{key: id}",
            ["discard: `value` is missing. Add the column with the value, such as `value: reading`."],
        ),
        (
            "{value: v}",
            ["discard: `key` is missing. Add the column that says whose value it is, such as `key: sensor`."],
        ),
        (
            "{key: who, value: v}",
            ["discard.key: the table has no column `who` of its feed. Name one of ts, id, name, v, d, day."],
        ),
        (
            "{key: day, value: day}",
            [
                "discard.key: `day` cannot be a key. Name a column of texts or of whole numbers.",
                "discard.value: `day` is no number. Name a column of numbers.",
            ],
        ),
        (
            "{key: v, value: v}",
            ["discard.key: `v` cannot be a key. Name a column of texts or of whole numbers."],
        ),
        (
            "{key: id, value: ID}",
            [
                "discard.value: `id` is both key and value, so the value of a key never changes. "
                "Name the column with what changes."
            ],
        ),
        ("{key: id, value: name}", ["discard.value: `name` is no number. Name a column of numbers."]),
    ],
)
def test_a_wrong_discard_is_refused(discard: str, messages: list[str]) -> None:
    assert complaints(discard) == messages


@pytest.mark.parametrize("pool", ["other", "crowd"])
def test_a_discard_needs_a_policy_that_discards(pool: str) -> None:
    policy = "edf" if pool == "other" else "admit-all"
    assert complaints("{key: id, value: v}", pool) == [
        f"discard: it has no effect in the pool `{pool}`, whose policy {policy} loads every file. "
        f"Remove it, or set {RDS}."
    ]


def test_either_files_are_discarded_or_rows_are_shed() -> None:
    assert complaints("{key: id, value: v}", feed=", shed: {most: 1, per: 1s, value: v}") == [
        "discard: its feed `readings` sheds rows, and only one of the two can decide what is loaded. "
        "Remove it, or the feed's `shed`."
    ]


def test_a_discard_is_of_base_tables_of_files() -> None:
    text = PROJECT % ("", "main", "{key: id, value: v}", "")
    derived = "  s: {sql: SELECT * FROM t, period: 1s, pool: main, discard: {key: id, value: v}}\n"
    with pytest.raises(InputError) as raised:
        loads(text + derived)
    assert str(raised.value) == (
        "freshline.yml:12: tables.s.discard: it has no effect on a table that loads no feed. "
        "Move it to the base table whose files may be left out."
    )
    with pytest.raises(InputError) as raised:
        loads(text.replace("period: 1s,\n", "period: 1s, arrival: continuous,\n"))
    assert "discard: it has no effect on a continuous feed, which has no files to leave out." in str(
        raised.value
    )


def test_what_is_compared_must_be_what_is_stored() -> None:
    assert (
        complaints("{key: who, value: v}", more=', select: "SELECT ts, name AS who, v FROM readings"') == []
    )
    assert complaints("{key: id, value: w}", more=', select: "SELECT ts, id, v * 2 AS w FROM readings"') == [
        f"discard.value: the table has no column `w` of its feed. {AS_IT_STANDS}"
    ]
    assert complaints("{key: id, value: v}", more=', select: "SELECT * FROM readings WHERE v > 0"') == [
        "discard: its `select` does not give one row for each record. "
        "Leave out or multiply records in a table that reads this one, or remove `discard`."
    ]
    shifted = "SELECT ts + INTERVAL 1 HOUR AS ts, id, v FROM readings"
    assert f"discard: its column `ts` is not the timestamp of its feed. {AS_IT_STANDS}" in complaints(
        "{key: id, value: v}", more=f', select: "{shifted}"'
    )
    warehouse = loads(
        PROJECT % ("", "main", "{key: who, value: v}", ', select: "SELECT ts, name who, v FROM readings"')
    )
    columns = discard_columns(warehouse.tables["t"], warehouse.feeds["readings"])
    assert [column.name for column in columns] == ["name", "v"]
