"""The experiment on continuous queries, live: a short run of what it is made of."""

import pytest

from freshline_lab.experiments.queries.live_queries import run_all
from freshline_lab.experiments.queries.query_answers import requirements


@pytest.mark.soak
@pytest.mark.spark
def test_queries_are_calibrated_answered_and_judged() -> None:
    # Each policy takes a process, a Spark and these seconds; others differ in nothing that is seen here.
    live = run_all(seconds=10, count=1, policies=("lrm",), demand=0.2)
    assert [query["name"] for query in live["queries"]] == ["Q1"]
    assert live["demand"] > 0
    (found,) = live["policies"]
    assert (found["policy"], found["refused"]) == ("lrm", [])
    assert found["iterations"] > 0
    assert found["busy"] > 0  # answers came, in time or not
    assert 0 <= found["error_share"] <= 1
    assert all(miss["because"] for miss in found["misses"])
    assert live["requirements"] == []  # there is nothing to compare it with
    assert len(requirements(live | {"policies": [found, found | {"policy": "rm"}]})) == 3
