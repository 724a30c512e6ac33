"""A query of a live run: its specification for the kernel, and the state that tracks and driver share."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Self

from freshline.kernel.queries.query_spec import QuerySpec
from freshline.live.queries.query_costs import QueryCosts
from freshline.live.queries.query_figures import QueryFigures
from freshline.spark.answering.window_reading import PreparedQuery
from freshline.storage.control.history import History


@dataclass(frozen=True, slots=True, eq=False)
class RunningQuery(QuerySpec):
    """To the kernel and its journal it is an ordinary specification; it carries the rest along.

    An edited query is a new object with its own state, although it has the same name and the old one may
    still be at its last iteration. Only the driver's thread uses `figures`.
    """

    prepared: PreparedQuery = field(kw_only=True)
    costs: QueryCosts = field(kw_only=True)
    figures: QueryFigures = field(kw_only=True, default_factory=QueryFigures)

    @classmethod
    def of(cls, spec: QuerySpec, prepared: PreparedQuery, history: History) -> Self:
        known = {each.name: getattr(spec, each.name) for each in fields(QuerySpec)}
        return cls(**known, prepared=prepared, costs=QueryCosts(history, prepared.query))

    @property
    def longest_part_us(self) -> int:
        """How long parts of its answers may be."""
        return self.costs.part_us(self.part_us)


def running_query(spec: QuerySpec) -> RunningQuery:
    """The query of a live run's task."""
    assert isinstance(spec, RunningQuery), f"{spec.name} was not admitted by a live run"
    return spec
