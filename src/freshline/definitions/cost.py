"""What an update costs, as a user declares it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from pydantic import ConfigDict, Field, model_validator

from freshline.definitions.errors import InputError
from freshline.definitions.values import Duration, Entry, Rate, Share


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one update of length L: (S + R·L), varying by up to ±b (paper 004, Definition 7)."""

    startup_us: int
    rate: Fraction
    variability: Fraction = Fraction(0)


class CostEntry(Entry):
    """The time that an update takes: startup + rate × the length of time it loads, give or take."""

    model_config = ConfigDict(
        title="Cost", json_schema_extra={"anyOf": [{"required": ["startup"]}, {"required": ["rate"]}]}
    )

    startup_us: Duration = Field(
        0,
        alias="startup",
        description="The part of an update's time that does not depend on how much it loads (default 0s).",
    )
    rate: Rate = Field(
        Fraction(0), description="Seconds of work for each second of data that is loaded (default 0)."
    )
    variability: Share = Field(
        Fraction(0), description="By which share the time may vary up and down: 0.2 is ±20 % (default 0)."
    )

    @model_validator(mode="after")
    def _costs_something(self) -> Self:
        if self.model_fields_set.isdisjoint({"startup_us", "rate"}):
            raise InputError("neither `startup` nor `rate` is given", "Add one, such as `startup: 3s`")
        return self

    def resolved(self) -> Cost:
        return Cost(self.startup_us, self.rate, self.variability)
