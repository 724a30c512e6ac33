"""Random continuous queries for the tests of their analysis, and what is easily seen to be right."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

from freshline.planning.analysis.levels import QueryLoad


def load(
    name: str,
    period: int,
    cost: int,
    *,
    deadline: int | None = None,
    fixed: int = 0,
    least: int = 1,
    part: int = 0,
) -> QueryLoad:
    one = Fraction(1)
    return QueryLoad(name, period, deadline or period, cost, fixed, max(least, fixed), part, one, one, 100)


@st.composite
def loads(
    draw: st.DrawFn, size_max: int = 6, period_max: int = 24, unit: int = 1, factor: int = 2
) -> list[QueryLoad]:
    """Queries of which each may cost some times its period; those of `unit` above 1 in whole units."""
    found = []
    for number in range(draw(st.integers(1, size_max))):
        period = draw(st.integers(2, period_max)) * unit
        deadline = draw(st.integers(period // 2, period))
        cost = draw(st.integers(1, max(1, factor * period // 2)))
        fixed = draw(st.integers(0, cost // 4))
        least = draw(st.integers(max(1, fixed), max(1, fixed, cost // 3)))
        weight, selectivity = draw(st.integers(1, 10)), draw(st.integers(1, 1000))
        found.append(
            QueryLoad(
                f"q{number}",
                period,
                deadline,
                cost,
                fixed,
                least,
                draw(st.integers(0, max(0, cost // 4))),
                Fraction(weight),
                Fraction(selectivity, 1000),
                draw(st.integers(0, 100_000)),
            )
        )
    return found


def points(ordered: Sequence[QueryLoad], level: int) -> list[int]:
    """{l·P_j ≤ D_i, j ≤ i} ∪ {D_i}."""
    deadline = ordered[level].deadline_us
    multiples = {
        instant
        for query in ordered[: level + 1]
        for instant in range(query.period_us, deadline + 1, query.period_us)
    }
    return sorted(multiples | {deadline})


def overrun(ordered: Sequence[QueryLoad], costs: Sequence[int], level: int, instant: int) -> int:
    """Φ: B_i + Σ ⌈t/P_j⌉·E_j − t."""
    blocking = max((query.part_us for query in ordered[level + 1 :]), default=0)
    asked = sum(
        -(-instant // query.period_us) * cost
        for query, cost in zip(ordered[: level + 1], costs, strict=False)
    )
    return blocking + asked - instant


def worst_by_simulation(
    ordered: Sequence[QueryLoad], costs: Sequence[int], level: int, until: int
) -> int | None:
    """The response of a level's first iteration if all above are released at 0, unit by unit.

    One below has just begun its longest part; None where it does not finish in time.
    """
    blocked = max((query.part_us for query in ordered[level + 1 :]), default=0)
    left = [0] * (level + 1)
    for now in range(until):
        for place, query in enumerate(ordered[: level + 1]):
            if now % query.period_us == 0 and (place < level or now == 0):
                left[place] += costs[place]
        if blocked:
            blocked -= 1
            continue
        running = next((place for place, rest in enumerate(left) if rest), None)
        if running is not None:
            left[running] -= 1
            if running == level and not left[running]:
                return now + 1
    return None
