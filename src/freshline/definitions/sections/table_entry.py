"""What a user may write about a table."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, PlainValidator, WithJsonSchema

from freshline.base.errors import InputError
from freshline.base.names import one_of
from freshline.definitions.language.document import shown
from freshline.definitions.language.policies import adaptive_policies, as_written, discarding_policies
from freshline.definitions.language.values import (
    Duration,
    Entry,
    Flag,
    Given,
    History,
    PositiveDuration,
    Rate,
    Text,
)
from freshline.definitions.sections.cost import CostEntry
from freshline.definitions.sections.discard import DiscardEntry
from freshline.sql.slices import Slices


class SlicesEntry(Entry):
    """How the rows of a table are divided into slices."""

    model_config = ConfigDict(title="Slices")

    by: Given[Text] = Field(
        None,
        description="The column that decides the slice: equal values are in equal slices. Tables can be read "
        "slice by slice together if their `by` columns join them (default: at random).",
    )

    outliers: Given[Text] = Field(
        None,
        description="A column of numbers. The 3 % of an update's rows with its largest absolute values are "
        "in no slice, and every query reads all of them. That improves estimates of sums that a few large "
        "values dominate (base tables only; default: none).",
    )

    def resolved(self) -> Slices:
        return Slices(self.by, self.outliers)


def _node_names(value: object) -> list[str]:
    names = [value] if isinstance(value, str) else value
    if isinstance(names, list) and names and all(isinstance(name, str) and name for name in names):
        return names
    raise InputError(f"{shown(value)} names no node", "Write the name of a node, or a list of names")


_NAME: Final = {"type": "string", "minLength": 1}
NodeNames = Annotated[
    list[str],
    PlainValidator(_node_names),
    WithJsonSchema({"anyOf": [_NAME, {"type": "array", "items": _NAME, "minItems": 1}]}),
]


class TableEntry(Entry):
    """A base table, which loads a feed, or a derived table, which is a query over other tables."""

    model_config = ConfigDict(
        title="Table",
        json_schema_extra={
            "oneOf": [
                {"required": ["feed"]},
                {"anyOf": [{"required": ["sql"]}, {"required": ["sources"]}]},
            ]
        },
    )

    feed: Given[Text] = Field(None, description="The feed that this table loads. It makes a base table.")
    select: Given[Text] = Field(
        None,
        description="A query over the columns of the feed, applied to each record by itself (default: all "
        "columns). Only for a base table.",
        examples=["SELECT ts, src, bytes * 8 AS bits FROM packets WHERE bytes > 0"],
    )
    sql: Given[Text] = Field(
        None,
        description="The query over other tables that gives this table's rows. It makes a derived table.",
    )
    sources: Given[Annotated[list[Text], Field(min_length=1)]] = Field(
        None, description="The tables that a derived table reads (default: those that its SQL reads)."
    )
    timestamp: Given[Text] = Field(
        None,
        description="The column that says when a row was made (default: that of the feed, or of the first "
        "source; a derived table without such a column has no time). In a base table only with `select`.",
    )
    refresh: Given[Literal["auto", "append", "full"]] = Field(
        None,
        description="How updates of a derived table are made. `append` adds rows that never change, `full` "
        "computes the table whole each time. `auto` appends if the SQL allows it (default auto).",
    )
    period_us: Given[PositiveDuration] = Field(
        None,
        alias="period",
        description="The time between two updates. A base table's is its feed's; on a continuous feed it may "
        "have its own.",
    )
    phase_us: Given[Duration] = Field(
        None,
        alias="phase",
        description="When the first update is released (default 0). Only with no `files` feed upstream.",
    )
    lookback_us: Given[Duration] = Field(
        None,
        alias="lookback",
        description="How far back an update reads its sources again, for joins over a range of time "
        "(default 0). Only for a derived table.",
    )
    lookback_trusted: Given[Flag] = Field(
        None,
        description="Accepts `lookback` as long enough if the SQL does not show the length of a range of "
        "time that it joins over (default false). If `lookback` is too short, rows are missing.",
    )
    align_us: Given[PositiveDuration] = Field(
        None,
        alias="align",
        description="The length of the windows that the SQL groups by, at most the period: updates end at "
        "their edges. Only for a derived table.",
    )
    pool: Given[Text] = Field(None, description="The pool that updates it (default: the only one).")
    target_lag_us: Given[PositiveDuration] = Field(
        None, alias="target_lag", description="The largest staleness that the table may have."
    )
    cost: Given[CostEntry] = Field(None, description="The cost of an update.")
    late_after_us: Given[PositiveDuration] = Field(
        None,
        alias="late_after",
        description="A table that is further behind its sources is late, and recovers if the pool's "
        f"policy is {one_of(adaptive_policies())} (default: its staleness bound).",
    )
    weight: Given[Rate] = Field(
        None,
        description="Of several late tables the one with the larger weight recovers first (default 1). It "
        f"matters in a pool with {as_written(adaptive_policies())}. Of outputs that cannot all be in time, "
        "those with the larger weight are.",
    )
    history_us: Given[History] = Field(
        None,
        alias="history",
        description="How long readers can follow its changes and read its earlier versions, from a minute to "
        "a year (default: the warehouse's `history`).",
    )
    slices: Given[SlicesEntry] = Field(
        None,
        description="Divides its rows into slices, so that queries can read a part of it. The reserved "
        "column `_slice` has the slice of a row. Write {} to divide rows at random.",
        examples=[{"by": "src"}],
    )
    deadline_us: Given[PositiveDuration] = Field(
        None,
        alias="deadline",
        description="The largest age of a record at its commit here. It makes the table an output. The table "
        "and all that it is computed from become steps: they have no `period`, and run on `nodes` as soon as "
        "there is work.",
        examples=["10s"],
    )
    node: Given[NodeNames] = Field(
        None,
        description="The node that a step must run on, or a list of nodes, on one of which it runs (default: "
        "the node of its feed, or wherever it fits best).",
        examples=["edge", ["edge", "centre"]],
    )
    selectivity: Given[Rate] = Field(
        None, description="For a step: rows that it writes for each row that it reads (default 1)."
    )
    discard: Given[DiscardEntry] = Field(
        None,
        description="Files that change little may be skipped if requests need the time. Only for a base "
        f"table of a feed of files, in a pool with {as_written(discarding_policies())}.",
        examples=[{"key": "sensor", "value": "reading"}],
    )
