"""`lrm` misses nothing, whatever comes: docs/lrm.md."""

import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.kernel.assembly.replay import replay
from freshline_lab.campaigns.queries.query_sets import RESCHEDULINGS, answer, random_queries
from freshline_lab.runs.query_run import query_kernel


@pytest.mark.parametrize("rescheduling", RESCHEDULINGS)
@sampled(60, one_in=10)
@given(seed=st.integers(0, 10**9))
def test_no_answer_is_late_whatever_the_streams_do_and_whoever_comes_and_goes(rescheduling, seed):
    queries = random_queries(seed, rescheduling)
    log = io.StringIO()
    seen = answer(queries, seed, log, checked=True)
    assert seen.missed == []
    _, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(query_kernel(queries.pool, queries.at_first), calls) == (len(calls), None)


@sampled(60, one_in=10)
@given(
    seed=st.integers(0, 10**9),
    policy=st.sampled_from([("rm", True), ("rm", False), ("lrm-paper", False)]),
    rescheduling=st.sampled_from(RESCHEDULINGS),
)
def test_under_every_policy_the_kernel_stays_sound_and_its_journal_replays(seed, policy, rescheduling):
    queries = random_queries(seed, rescheduling)
    name, preemptive = policy
    queries = replace(queries, pool=replace(queries.pool, policy=name, preemptive=preemptive))
    log = io.StringIO()
    answer(queries, seed, log, checked=True)
    _, *calls = map(json.loads, log.getvalue().splitlines())
    assert replay(query_kernel(queries.pool, queries.at_first), calls) == (len(calls), None)
