"""The cost of an update, as a user declares it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, Self

from pydantic import ConfigDict, Field, model_validator

from freshline.base.errors import InputError
from freshline.definitions.language.values import (
    Count,
    Duration,
    Entry,
    ExactDuration,
    Flag,
    Given,
    Rate,
    Share,
)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one update of length L: (S + R·L), varying by up to ±b (paper 004, Definition 7).

    A step of n rows costs S + per_row·n instead (paper 002, section 5.2.2). So does a table that is computed
    whole from n rows; its S includes the rows that there are.
    """

    startup_us: int
    rate: Fraction
    variability: Fraction = Fraction(0)
    per_row_us: Fraction = Fraction(0)  # of a step, whose cost depends on the number of rows
    # How it was measured, for Sparks with fewer cores than their tracks can use at once.
    tasks: int | None = None  # the most tasks that it runs at once; None if unknown
    stages: int = 1  # after each it may have to wait for a core
    task_us: int | None = None  # its longest task; None: as long as the update
    loaded: bool = False  # it is the cost while all tracks are busy
    rows: int = 0  # of a table that is computed whole: the rows that `startup_us` includes

    def sized(self, rows: int) -> Cost:
        """The cost of computing a table whole from that many rows."""
        grown_us = ceil(self.per_row_us * rows) - ceil(self.per_row_us * self.rows)
        return replace(self, startup_us=self.startup_us + grown_us, rows=rows)


class CostEntry(Entry):
    """The time that an update takes: startup + rate × the length of time that it loads, ± variability."""

    model_config = ConfigDict(
        title="Cost",
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("startup", "rate", "per_row")]},
    )

    startup_us: Duration = Field(
        0,
        alias="startup",
        description="The part of an update's time that does not depend on how much it loads (default 0s).",
    )
    rate: Rate = Field(
        Fraction(0), description="Seconds of work for each second of data that is loaded (default 0)."
    )
    per_row_us: ExactDuration = Field(
        Fraction(0),
        alias="per_row",
        description="For a step, a table of an output with a `deadline`, and for a table that is computed "
        "whole: the time for each row that it reads (default 0s). It may be finer than a microsecond.",
        examples=["200us"],
    )
    variability: Share = Field(
        Fraction(0), description="The share by which the time may vary up and down: 0.2 is ±20 % (default 0)."
    )

    tasks: Given[Count] = Field(
        None,
        description="The most Spark tasks that an update runs at once, if the number of `cores` is known "
        "(default: as many as there are cores).",
    )
    stages: Given[Count] = Field(
        None,
        description="How many Spark stages an update has; after each it may wait for a core (default 1).",
    )
    task_us: Given[Duration] = Field(
        None, alias="task", description="The longest Spark task of an update (default: the whole update)."
    )
    loaded: Flag = Field(
        False,
        description="Whether the cost was measured while all tracks were busy. It then counts as it is, "
        "whatever the number of cores (default false).",
    )

    @model_validator(mode="after")
    def _costs_something(self) -> Self:
        if self.model_fields_set.isdisjoint({"startup_us", "rate", "per_row_us"}):
            raise InputError("neither `startup` nor `rate` is given", "Add one, such as `startup: 3s`")
        return self

    def resolved(self) -> Cost:
        return Cost(
            self.startup_us,
            self.rate,
            self.variability,
            self.per_row_us,
            self.tasks,
            self.stages or 1,
            self.task_us,
            self.loaded,
        )


def cost_from_record(record: dict[str, Any] | None) -> Cost | None:
    """Reads a cost that was written as JSON."""
    if record is None:
        return None
    exact = {key: Fraction(record.get(key, 0)) for key in ("rate", "variability", "per_row_us")}
    return Cost(**{**record, **exact})
