"""`POST /v1/query`: from a body to an answer, as long as the client waits."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Coroutine
from typing import Any, Final

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from freshline.base.clock import clock
from freshline.base.duration import SECOND
from freshline.service.bodies import read_body
from freshline.service.failures import ServiceFailure, analysing, no_answer, rejected
from freshline.service.question_threads import QuestionThreads
from freshline.service.questions import Question, read_question
from freshline.service.running_warehouse import RunningWarehouse, ServiceRequest

QUESTION_MAX: Final = 1 << 20
ARROW: Final = "application/vnd.apache.arrow.stream"
# The limit for one class; more questions would only wait for each other. With many classes each has a share
# of the connections, and some are left for other requests, so no class blocks another.
WAITING_MAX: Final = 64
CONNECTIONS_MAX: Final = 256
_CONNECTIONS_LEFT: Final = 32
# More rows as JSON would take seconds and hundreds of megabytes.
JSON_ROWS_MAX: Final = 100_000
# The run replies at the deadline, or somewhat later on a busy machine. Without a reply the client gets an
# error after a share of the deadline and a second.
_GRACE_SHARE: Final = 0.1
_GRACE_S: Final = 1.0


class QuestionIntake:
    """Takes questions in the service's event loop. No class can take the capacity of another."""

    def __init__(self, site: RunningWarehouse) -> None:
        self._site = site
        self._waiting: Counter[str] = Counter()
        self._threads = QuestionThreads()

    async def __call__(self, request: Request) -> Response:
        question = read_question(await read_body(request, QUESTION_MAX))
        asked, name = self._site.ask(question), question.class_name
        if self._waiting[name] >= waiting_max(len(self._site.classes())):
            raise rejected(SECOND)
        self._waiting[name] += 1
        try:
            if self._threads.is_full(name):
                raise analysing()
            answering = self._answer(asked, question, wants_arrow(request.headers.get("accept", "")))
            return await _unless_gone(request, answering)
        finally:
            self._waiting[name] -= 1
            asked.drop()

    async def _answer(self, asked: ServiceRequest, question: Question, arrow: bool) -> Response:
        """Waits for the answer: for the analysis until the deadline, for the run's reply a little longer."""
        name = question.class_name
        left_s = (question.asked_us + question.deadline_us - clock()) / SECOND
        grace_s = _GRACE_S + _GRACE_SHARE * question.deadline_us / SECOND
        try:
            async with asyncio.timeout(left_s + grace_s):
                async with asyncio.timeout(left_s):
                    await self._threads.in_turn(name, asked.submit)
                await asyncio.wrap_future(asked.reply)
        except TimeoutError:
            raise no_answer() from None
        return await self._threads.in_turn(name, _as_arrow if arrow else _as_json, asked)


def waiting_max(classes: int) -> int:
    """How many questions of a class may wait at a time, given the number of classes.

    >>> waiting_max(1), waiting_max(4), waiting_max(1_000)
    (64, 56, 1)
    """
    return max(1, min(WAITING_MAX, (CONNECTIONS_MAX - _CONNECTIONS_LEFT) // max(1, classes)))


async def _unless_gone(request: Request, answering: Coroutine[Any, Any, Response]) -> Response:
    """The answer; raises as soon as the client has disconnected."""
    answer = asyncio.ensure_future(answering)
    gone = asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        raise ServiceFailure("bad_request", "the client has disconnected", "Keep the connection open")
    finally:
        answer.cancel()
        gone.cancel()


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def wants_arrow(accept: str) -> bool:
    """Whether the client names Arrow and does not prefer JSON.

    >>> wants_arrow(ARROW), wants_arrow("*/*"), wants_arrow(f"{ARROW};q=0.5, application/json")
    (True, False, False)
    """
    liked = dict(_liking(each) for each in accept.split(","))
    return liked.get(ARROW, 0.0) > 0 and liked[ARROW] >= liked.get("application/json", 0.0)


def _liking(media: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in media.split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return name, float(parameter.removeprefix("q="))
            except ValueError:
                return name, 0.0
    return name, 1.0


def _as_json(answer: ServiceRequest) -> Response:
    rows = answer.row_count()
    if rows > JSON_ROWS_MAX:
        what = f"the answer has {rows:,} rows, and as JSON it may have {JSON_ROWS_MAX:,}"
        raise ServiceFailure("not_supported", what, f"Add a LIMIT, or send `Accept: {ARROW}`")
    return JSONResponse(answer.record())


def _as_arrow(answer: ServiceRequest) -> Response:
    """The rows as an Arrow stream; the other fields are JSON in its schema's metadata."""
    table, record = answer.table(), answer.record()
    about = {key: value for key, value in record.items() if key != "rows"}
    table = table.replace_schema_metadata({"freshline": json.dumps(about)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return Response(sink.getvalue().to_pybytes(), media_type=ARROW)
