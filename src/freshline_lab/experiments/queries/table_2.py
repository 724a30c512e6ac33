"""Paper 000, Table 2: the ten queries of its experiments."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from freshline.base.duration import SECOND
from freshline.definitions.sections.queries import Query
from freshline.planning.analysis.levels import QueryLoad
from freshline.planning.analysis.operators import operator_cost
from freshline.sql.operators import Aggregate, Join, Operator, Project, Select, Stream

_HALF: Final = Fraction(1, 2)
_SELECT: Final = Select(_HALF, Stream("s1"))
_TWO: Final = Join(_HALF, Stream("s1"), Stream("s2"))
# Operators, stride in seconds, weight. Selectivities are not in print; half is chosen.
TABLE_2: Final[tuple[tuple[Operator, int, int], ...]] = (
    (_SELECT, 1, 5),
    (_SELECT, 2, 6),
    (Project(_SELECT), 2, 3),
    (Project(_SELECT), 3, 2),
    (_TWO, 4, 1),
    (_TWO, 5, 7),
    (Join(_HALF, _TWO, Stream("s3")), 5, 8),
    (Project(_TWO), 6, 9),
    (Join(_HALF, Project(Stream("s1")), Project(Stream("s2"))), 6, 10),
    (Aggregate(Stream("s1")), 6, 4),
)


def table_2(rate: int) -> list[QueryLoad]:
    """Its queries over streams of that rate, with windows as long as strides."""
    loads = []
    for number, (operators, stride, weight) in enumerate(TABLE_2, start=1):
        cost = operator_cost(operators, dict.fromkeys(("s1", "s2", "s3"), rate * stride))
        stride_us, least_us = stride * SECOND, max(1, cost.fixed_us)
        times = stride_us, stride_us, cost.cost_us, cost.fixed_us, least_us, 0
        loads.append(QueryLoad(f"Q{number}", *times, Fraction(weight), cost.selectivity, cost.tuples))
    return loads


def queries(count: int, pool: str) -> list[Query]:
    """The first `count` queries; beyond ten they repeat."""
    found = []
    for number in range(count):
        operators, stride, weight = TABLE_2[number % len(TABLE_2)]
        stride_us = stride * SECOND
        found.append(
            Query(
                f"Q{number + 1}",
                "",
                pool,
                *(stride_us, stride_us, stride_us),
                Fraction(weight),
                tables=tuple(sorted(_streams(operators))),
                operators=operators,
            )
        )
    return found


def _streams(operators: Operator) -> set[str]:
    match operators:
        case Stream(name):
            return {name}
        case Join(_, left, right):
            return _streams(left) | _streams(right)
    return _streams(operators.input)
