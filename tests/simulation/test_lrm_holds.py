"""`lrm` misses nothing, whatever comes: docs/lrm.md."""

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.assembly.replay import replay
from freshline.simulation.continuous import query_kernel
from freshline.testing.query_sets import RESCHEDULINGS, answer, random_queries


@pytest.mark.parametrize("rescheduling", RESCHEDULINGS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_no_answer_is_late_whatever_the_streams_do_and_whoever_comes_and_goes(rescheduling, seed):
    queries = random_queries(seed, rescheduling)
    log = io.StringIO()
    seen = answer(queries, seed, log, checked=True)
    assert seen.missed == []
    _, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(query_kernel(queries.pool, queries.at_first), calls) == (len(calls), None)
