"""The experiment on continuous queries, live: a short run of what it is made of."""

import pytest

from freshline.experiments.live_queries import run_all


@pytest.mark.spark
def test_queries_are_calibrated_and_answered_under_each_policy() -> None:
    live = run_all(seconds=12, count=1, policies=("lrm", "rm"), demand=0.2)
    assert [query["name"] for query in live["queries"]] == ["Q1"]
    assert live["demand"] > 0
    assert [found["policy"] for found in live["policies"]] == ["lrm", "rm"]
    for found in live["policies"]:
        assert found["refused"] == []
        assert found["iterations"] > 0
        assert found["busy"] > 0  # answers came, in time or not
        assert 0 <= found["error_share"] <= 1
        assert all(miss["because"] for miss in found["misses"])
    assert len(live["requirements"]) == 3
