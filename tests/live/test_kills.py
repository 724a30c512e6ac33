"""A runner that is killed at random moments and started again at once."""

from freshline.testing.kills import kill_and_check


def test_after_ten_kills_every_row_is_there_once(tmp_path):
    report = kill_and_check(tmp_path, kills=10, seed=4, run_s=(0.5, 3.0))
    assert report.exact, report
    assert report.kills == 10
    assert all(rows > 0 for rows in report.rows.values()), report
