"""An iteration of all slices is the exact answer; of some it is an estimate, and says how good a one."""

import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from freshline.definitions.duration import SECOND
from freshline.definitions.slices import SLICES
from freshline.testing.query_statements import QueryStatements
from freshline.testing.sliced_tables import START_US, random_tables

LONG = dict.fromkeys("abc", ("bigint", "bigint"))
BY_KEY = {"a": "{by: k}", "b": "{by: k}", "c": "{by: j}"}


def as_rows(rows: Any) -> Counter[tuple[Any, ...]]:
    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
        return repr(value)

    return Counter(tuple((key, plain(value)) for key, value in row.items()) for row in rows)


def spark_rows(frame) -> Counter[tuple[Any, ...]]:
    return as_rows(frame.toArrow().to_pylist())


def cut(rng: random.Random) -> list[int]:
    """Parts of all slices."""
    sizes, left = [], SLICES
    while left and len(sizes) < 3:
        sizes.append(rng.randint(1, left))
        left -= sizes[-1]
    return [*sizes, left] if left else sizes


@settings(
    max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture], phases=[Phase.generate]
)
@given(seed=st.integers(0, 1 << 32))
def test_all_slices_in_whatever_parts_give_the_exact_answer(spark, seed: int) -> None:
    rng, statements = random.Random(seed), QueryStatements(seed)
    queries = {f"q{number}": statements.right().sql for number in range(3)}
    with TemporaryDirectory() as folder:
        tables = random_tables(spark, Path(folder), seed, queries, rng.choice([5, 20, 40]) * SECOND)
        for name in queries:
            to_us = START_US + rng.choice([-1, 7, 20, 50]) * SECOND
            iteration = tables.prepared(name).begin(to_us)
            for slices in cut(rng):
                iteration.read(spark, slices)
            assert iteration.slices_left == 0
            outcome = iteration.outcome()
            assert as_rows(outcome.answer.rows) == spark_rows(tables.exact(name, to_us)), queries[name]
            assert outcome.answer.estimates == ()
            assert outcome.keep == 1
            assert outcome.rows_seen == iteration.rows()
