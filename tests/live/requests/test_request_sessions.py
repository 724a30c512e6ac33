"""Sessions that are lent to requests."""

from freshline.live.requests.request_sessions import RequestSessions


def test_what_is_asked_is_taken_literally_and_sessions_are_lent_again(spark) -> None:
    sessions = RequestSessions(spark)
    one, other = sessions.take(), sessions.take()
    for written in ("${env:PATH}", "${system:user.name}", "${spark.app.id}"):
        assert spark.sql(f"SELECT '{written}' AS told").first()[0] != written  # it would tell
        assert one.sql(f"SELECT '{written}' AS told").first()[0] == written
    sessions.give_back(one)
    assert sessions.take() is one
    assert sessions.take() is not other
