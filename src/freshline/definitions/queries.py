"""The section `queries`: continuous queries, answered over a window of time once in every stride."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Final

from pydantic import ConfigDict, Field

from freshline.definitions.cost import Cost, CostEntry
from freshline.definitions.errors import NOWHERE, Place
from freshline.definitions.operator_records import operator_of, operator_record
from freshline.definitions.operators import Operator
from freshline.definitions.section import Resolution, Section
from freshline.definitions.values import (
    Duration,
    Entry,
    Given,
    PositiveDuration,
    PositiveNumber,
    PositiveShare,
    Share,
    Text,
)


@dataclass(frozen=True, slots=True)
class Side:
    """A table as a query's FROM reads it: in slices, or whole in every part."""

    alias: str  # what the SQL calls it there, in small letters
    table: str
    in_slices: bool


@dataclass(frozen=True, slots=True)
class Query:
    """A query that is answered anew in every stride, over the last window of its tables."""

    name: str
    sql: str
    pool: str
    window_us: int
    stride_us: int
    deadline_us: int  # after the release, at most the stride
    weight: Fraction = Fraction(1)
    keep_least: Fraction = Fraction(0)  # the share of its window that it must read at least
    cost: Cost | None = None  # of an answer over a window; None: by its operators, or learned
    selectivity: Fraction | None = None  # declared: rows of the answer over those it reads
    part_us: int | None = None  # the longest stretch in which it cannot be put aside; None: by default
    into: str | None = None  # a table of its answers
    tables: tuple[str, ...] = ()  # that it reads, once each
    sides: tuple[Side, ...] = ()  # of its FROM, in their order
    operators: Operator | None = None  # what it is made of; always there in a warehouse that was loaded
    place: Place = NOWHERE


class QueryEntry(Entry):
    """A query that is answered anew in every stride, over the last window of the tables it reads."""

    model_config = ConfigDict(title="Query")

    sql: Text = Field(
        description="The query over tables: conditions, columns, joins of two or three, count, sum, avg, min "
        "and max, GROUP BY.",
        examples=["SELECT src, sum(bytes) AS bytes FROM packets GROUP BY src"],
    )
    window_us: PositiveDuration = Field(alias="window", description="The length of time that it reads.")
    stride_us: PositiveDuration = Field(alias="stride", description="The time between two answers.")
    deadline_us: Given[PositiveDuration] = Field(
        None,
        alias="deadline",
        description="By when after its release an answer must be there, at most the stride (default: the "
        "stride).",
    )
    weight: Given[PositiveNumber] = Field(
        None, description="How much an error in its answers counts beside those of others (default 1)."
    )
    keep_least: Given[Share] = Field(
        None, description="The share of its window that it must read at least (default 0)."
    )
    pool: Given[Text] = Field(
        None, description="The pool that answers it (default: the only one that can hold queries)."
    )
    cost: Given[CostEntry] = Field(
        None,
        description="What an answer costs: startup + rate × window (default: what its operators cost over "
        "the `rows` of the feeds).",
    )
    selectivity: Given[PositiveShare] = Field(
        None, description="Rows of an answer for each row that is read (default: by its operators)."
    )
    part_us: Given[Duration] = Field(
        None,
        alias="part",
        description="The longest stretch of its work that is not put aside for more urgent queries (default: "
        "a quarter of the shortest deadline above it).",
    )
    into: Given[Text] = Field(None, description="A table of its own that its answers are kept in.")


def _resolve(resolution: Resolution) -> dict[str, Any]:
    return {"queries": {}}


def _to_record(query: Query) -> dict[str, Any]:
    operators = None if query.operators is None else operator_record(query.operators)
    return {**asdict(query), "operators": operators}


def _from_record(record: dict[str, Any]) -> Query:
    cost = record["cost"]
    if cost is not None:
        cost = Cost(cost["startup_us"], Fraction(cost["rate"]), Fraction(cost["variability"]))
    selectivity = record["selectivity"]
    read = {
        "weight": Fraction(record["weight"]),
        "keep_least": Fraction(record["keep_least"]),
        "cost": cost,
        "selectivity": None if selectivity is None else Fraction(selectivity),
        "tables": tuple(record["tables"]),
        "sides": tuple(Side(**side) for side in record["sides"]),
        "operators": None if record["operators"] is None else operator_of(record["operators"]),
    }
    return Query(**{**record, **read})


QUERIES: Final = Section(
    "queries",
    QueryEntry,
    _resolve,
    _from_record,
    missing={
        "sql": "Add the query, such as `sql: SELECT src, sum(bytes) AS bytes FROM packets GROUP BY src`",
        "window": "Add the length of time that it reads, such as `window: 1 minute`",
        "stride": "Add the time between two answers, such as `stride: 10s`",
    },
    description="The continuous queries, by name.",
    to_record=_to_record,
)
