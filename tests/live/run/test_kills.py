"""A runner that is killed at random moments and started again at once."""

import pytest

from freshline_lab.campaigns.kills.kills import kill_and_check

# Each kill needs a start of Spark, some ten seconds. `benchmarks/kills.py` does 50.
KILLS = 10


@pytest.mark.soak
@pytest.mark.spark
def test_after_ten_kills_every_row_is_there_once(tmp_path):
    report = kill_and_check(tmp_path, KILLS, seed=4, run_s=(0.2, 6.0))
    assert report.exact, report
    assert report.kills == KILLS
    assert report.while_opening > 0
    assert all(rows > 0 for rows in report.rows.values()), report
