"""Random SQL is refused, or its table equals it; and a table that does not is found out."""

import random
from itertools import count, islice

import pytest

from cases import cases
from freshline.base.errors import InputError
from freshline_lab.campaigns.sql.sql_equality import (
    QUICK,
    accepted,
    check_statement,
    computed,
    random_history,
    random_keys,
)
from freshline_lab.campaigns.sql.statements import Statements

TAKEN = cases(12, one_in=3)
NEAR = "SELECT greatest(ts, at) AS ts, v, w FROM a JOIN b ON abs(timestampdiff(SECOND, ts, at)) <= 9"


@pytest.fixture
def quick(spark):
    session = spark.newSession()
    for key, value in QUICK.items():
        session.conf.set(key, value)
    return session


@pytest.mark.sampled
def test_random_statements_are_refused_or_equal_to_plain_spark(quick):
    cases = (check_statement(quick, f"test:{number}") for number in count())
    taken = [*islice((case for case in cases if case.outcome in ("equal", "different")), TAKEN)]
    assert [case for case in taken if case.outcome == "different"] == []
    assert sum(case.rows for case in taken) > 100


def test_a_table_with_too_short_a_lookback_is_found_to_differ(quick):
    rng = random.Random(0)
    differ = []
    for lookback in ("100ms", "10s"):
        table = accepted(NEAR, f"lookback: {lookback}, lookback_trusted: true, ")
        found, expected = computed(quick, table, random_history(quick, table, rng))
        assert found.total() > 0
        differ.append(found != expected)
    assert differ == [True, False]


@pytest.mark.soak
def test_many_kinds_of_random_statements_are_taken():
    taken = 0
    words = {
        "JOIN",
        "SEMI",
        "ANTI",
        "UNION",
        "DISTINCT",
        "OVER",
        "HAVING",
        "WITH",
        "window(",
        "floor(",
        "BETWEEN",
    }
    for number in range(200):
        sql = Statements(f"kinds:{number}").next()
        try:
            accepted(sql, random_keys(sql, random.Random(number)))
        except InputError:
            continue
        taken += 1
        words -= {word for word in words if word in sql}
    assert taken >= 0.3 * 200
    assert words == set()
