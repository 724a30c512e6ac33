"""`shed` of a feed: only the records with the highest values of each window are loaded (paper 002)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema
from sqlglot import exp

from freshline.base.duration import SECOND, format_duration
from freshline.base.errors import InputError
from freshline.definitions.language.document import shown
from freshline.definitions.language.values import Entry, PositiveDuration, Text
from freshline.sql.columns import Column, parse_columns
from freshline.sql.kept_columns import kept_columns
from freshline.sql.nondeterminism import unsteady
from freshline.sql.query import parse_query
from freshline.sql.row_expressions import check_row
from freshline.sql.time import Relation, own_time

if TYPE_CHECKING:
    from freshline.definitions.language.section import LiveCheck
    from freshline.definitions.sections.feeds import Feed
    from freshline.definitions.sections.stored import StoredDefinition

MOST_MAX: Final = 1_000_000_000
MISSING: Final = {
    "most": "Add how many records of a window are loaded, such as `most: 15`",
    "per": "Add how long a window is, such as `per: 1s`",
    "value": "Add what says which records count most, such as `value: speed`",
}
_OF_A_RECORD: Final = "Write an expression over the feed's columns, such as `speed * 2`"


@dataclass(frozen=True, slots=True)
class Shed:
    """Of each window, by the records' timestamps, the `most` records with the highest value are loaded."""

    most: int
    per_us: int
    value: str  # SQL over the feed's columns

    @property
    def rows(self) -> Fraction:
        """The most rows that are loaded per second."""
        return Fraction(self.most * SECOND, self.per_us)

    def in_words(self) -> str:
        """
        >>> Shed(15, 1_000_000, "speed *  2").in_words()
        'to the 15 of 1s with the highest speed * 2'
        """
        length = format_duration(self.per_us)
        return f"to the {self.most} of {length} with the highest {' '.join(self.value.split())}"


def _most(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_MAX:
        return value
    raise InputError(
        f"{shown(value)} is not a whole number from 1 to {MOST_MAX}",
        "Write how many records of a window are loaded",
    )


Most = Annotated[
    int, PlainValidator(_most), WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_MAX})
]


class ShedEntry(Entry):
    """Only the records with the highest values of each window of time are loaded."""

    model_config = ConfigDict(title="Shed")

    most: Most = Field(description="How many records of a window are loaded.", examples=[15])
    per_us: PositiveDuration = Field(alias="per", description="The length of a window.", examples=["1s"])
    value: Text = Field(
        description="The value of a record: SQL over the feed's columns. NULL is the lowest value. Records "
        "with equal values are ordered by their columns, smaller ones first.",
        examples=["speed * 2"],
    )

    def resolved(self) -> Shed:
        return Shed(self.most, self.per_us, self.value)


def check_shed_live(check: LiveCheck, feed: Feed) -> None:
    """Reports a value that cannot be computed from a record, or that changes over time."""
    if feed.shed is None or feed.landing.schema is None:
        return
    path = ("feeds", feed.name, "shed")
    try:
        columns = parse_columns(feed.landing.schema)
    except InputError:
        return  # the schema's own check reports it
    try:
        _check_value(feed.shed.value, columns, feed.landing.timestamp)
    except InputError as error:
        check.report((*path, "value"), feed.place, error.what, error.remedy)


def check_shed_table(check: LiveCheck, table: StoredDefinition) -> None:
    """Reports a `select` after which the number of loaded records of a window cannot be counted."""
    assert table.feed is not None
    feed = check.warehouse.feeds[table.feed]
    if feed.shed is None or table.select is None or feed.landing.schema is None:
        return
    path = ("tables", table.name, "select")
    try:
        kept = kept_columns(table.select, parse_columns(feed.landing.schema))
    except InputError:
        return  # the check of `select` reports it
    remedy = "Select each record once and its timestamp as it stands; a table that reads this one may do more"
    if kept is None:
        check.report(path, table.place, f"its feed `{feed.name}` sheds rows by what is loaded", remedy)
        return
    timestamp = kept.get((table.timestamp or "").lower())
    if timestamp is None or timestamp.name.lower() != (feed.landing.timestamp or "").lower():
        what = f"its feed `{feed.name}` sheds rows by their timestamps, and `{table.timestamp}` is another"
        check.report(path, table.place, what, remedy)
    if any(name == "input_file_name" for name in unsteady(parse_query(table.select), ())):
        what = "rows that are sorted by value no longer know their file"
        check.report(path, table.place, what, "Remove `input_file_name`, or the feed's `shed`")


def _check_value(text: str, columns: tuple[Column, ...], timestamp: str | None) -> None:
    query = parse_query(f"SELECT {text}\n")
    is_plain = isinstance(query, exp.Select) and {key for key, value in query.args.items() if value} == {
        "expressions"
    }
    if not is_plain or len(query.expressions) != 1 or isinstance(query.expressions[0], exp.Alias):
        raise InputError(f"{text!r} is not one expression", _OF_A_RECORD)
    check_row(query.expressions[0], "the value")
    names = {column.name.lower() for column in columns}
    for column in query.find_all(exp.Column):
        if column.parts[0].name.lower() not in names:
            listed = ", ".join(each.name for each in columns)
            raise InputError(f"there is no column `{column.parts[0].name}`", f"The columns are {listed}")
    relation = Relation(tuple(names), own_time(timestamp))
    for name in unsteady(query, (relation,)):
        what = f"`{name}` gives something else each time it is asked"
        raise InputError(what, "Use only what the records say, such as their timestamps")
