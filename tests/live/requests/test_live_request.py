"""Requests between clients, the driver and the tracks: every client gets a reply, in any order of events."""

from types import SimpleNamespace
from typing import Any

import pytest

from freshline.kernel.requests.events import RequestArrived, RequestWithdrawn
from freshline.kernel.requests.request import AnswerRequest, RejectRequest
from freshline.live.loop.messages import Message
from freshline.live.requests.class_counts import ClassCounts
from freshline.live.requests.live_request import LiveRequest, ReadPlan
from freshline.live.requests.live_requests import LiveRequests
from freshline.live.requests.part_worker import PartJudge
from freshline.live.requests.request_costs import RequestExtent
from freshline.service.failures import ServiceFailure, no_answer
from freshline.service.questions import Question
from freshline.sql.request_sql import RequestRefused

NOW = 1_000_000
QUESTION = Question("SELECT 1", "gold", NOW, 2_000_000)
SESSIONS: Any = SimpleNamespace(take=lambda: "session", give_back=lambda session: None)


def prepared(question: Question) -> ReadPlan:
    sql: Any = SimpleNamespace(sql=SimpleNamespace(text=question.sql, tables=("t",)))
    return ReadPlan(sql, RequestExtent(1, 1), (128, 128), (5, 5))


class Run:
    """A client, and the driver's events for the kernel."""

    def __init__(self) -> None:
        self.counts = ClassCounts(["gold"])
        self.requests = LiveRequests(SESSIONS, self.counts)
        self.messages: list[Message] = []

    def ask(self) -> LiveRequest:
        return LiveRequest(QUESTION, prepared, self.requests, self.messages.append)

    def asked(self, now: int = NOW) -> tuple[LiveRequest, RequestArrived]:
        """A question, and how the kernel hears of it."""
        asked = self.ask()
        asked.submit()
        (event,) = self.tell(now)
        assert isinstance(event, RequestArrived)
        return asked, event

    def tell(self, now: int = NOW) -> list[object]:
        observer: Any = None
        made = [message.event(observer, now) for message in self.messages]
        self.messages.clear()
        return [event for event in made if event is not None]


def code(asked: LiveRequest) -> str:
    error = asked.reply.exception(0)
    assert isinstance(error, ServiceFailure)
    return error.code


def test_a_question_becomes_a_request_of_its_class_and_deadline() -> None:
    run = Run()
    asked, event = run.asked(NOW + 5)
    assert event.request == (1, "gold", NOW, NOW + 2_000_000, (5, 5), ("t",))
    assert run.requests.find(1) is not None
    run.requests.carry_out(RejectRequest(event.request, 1_500_000))
    assert code(asked) == "rejected"
    assert run.requests.find(1) is None
    asked.drop()
    assert run.messages == []  # of one that is over there is nothing to be said


def test_who_goes_before_it_is_read_asks_nothing() -> None:
    run = Run()
    asked = run.ask()
    asked.drop()
    asked.submit()
    assert run.messages == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_who_goes_is_withdrawn_however_messages_overtake_one_another(order: tuple[int, int]) -> None:
    run = Run()
    asked = run.ask()
    asked.submit()
    asked.drop()
    run.messages[:] = [run.messages[place] for place in order]
    events = run.tell()
    if order == (0, 1):
        assert [type(event) for event in events] == [RequestArrived, RequestWithdrawn]
    else:
        assert events == []
    assert run.requests.find(1) is None


def test_a_deadline_that_has_passed_before_the_driver_hears_is_no_answer() -> None:
    run = Run()
    asked = run.ask()
    asked.submit()
    assert run.tell(NOW + 2_000_000) == []
    assert code(asked) == "no_answer"


def test_an_answer_without_a_part_is_none_and_says_why_where_that_is_known() -> None:
    run = Run()
    for failure, expected in (
        (None, "no_answer"),
        (ServiceFailure("bad_sql", "division by zero", "Mend it"), "bad_sql"),
    ):
        asked, event = run.asked()
        found = run.requests.find(event.request.number)
        assert found is not None
        found.failure = failure
        run.requests.carry_out(AnswerRequest(event.request, 0))
        assert code(asked) == expected


def test_a_part_that_failed_and_is_to_be_tried_again_is_not_why_time_is_up() -> None:
    run = Run()
    _, event = run.asked()
    found = run.requests.find(event.request.number)
    assert found is not None
    judge = PartJudge(run.requests, print)
    expected = [(False, "no_answer"), (True, "failed")]
    for hopeless, code_then in expected:
        assert judge._is_hopeless(found, OSError("a disk")) == hopeless
        assert (found.failure or no_answer()).code == code_then


def test_a_run_that_stops_tells_all_who_wait_and_hears_nobody_more() -> None:
    run = Run()
    heard, coming, late = run.ask(), run.ask(), run.ask()
    heard.submit()
    run.tell()
    coming.submit()
    run.requests.close()
    assert (code(heard), code(coming)) == ("stopping", "stopping")
    with pytest.raises(ServiceFailure, match="stopping"):
        late.submit()
    assert run.tell() == []
    run.requests.close()


def test_who_has_gone_is_not_told() -> None:
    run = Run()
    asked, event = run.asked()
    asked.reply.cancel()
    run.requests.carry_out(AnswerRequest(event.request, 0))
    assert asked.reply.cancelled()


def test_an_answer_that_cannot_be_put_together_says_why_by_its_code() -> None:
    def refuse() -> None:
        raise RequestRefused("not_supported", "a sum of integers is beyond 64 bits", "Add up doubles")

    asked, _ = Run().asked()
    asked._run = SimpleNamespace(answer=refuse)  # type: ignore[assignment]
    asked.answer(1)
    for written in (asked.record, asked.table):
        with pytest.raises(ServiceFailure) as found:
            written()
        assert (found.value.code, found.value.status) == ("not_supported", 422)


def test_a_session_comes_back_where_reading_cannot_even_begin() -> None:
    lent: list[object] = []
    sessions: Any = SimpleNamespace(take=lambda: "session", give_back=lent.append)
    asked, _ = Run().asked()
    with pytest.raises(KeyError):
        asked.read(0, sessions, {})  # there is no such table
    assert lent == ["session"]
