"""Prepares requests: Spark analyses the SQL, and the answer is divided into parts."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from fractions import Fraction
from threading import Lock
from typing import Final

from freshline.base import signals
from freshline.base.duration import format_duration
from freshline.definitions.sections.classes import PART_MOST_US
from freshline.live.requests.live_request import ReadPlan, failure_of
from freshline.live.requests.request_costs import RequestCosts, RequestExtent
from freshline.live.requests.request_sessions import RequestSessions
from freshline.live.tables.run_context import RunResources
from freshline.planning.costs.requests import PartCost, part_most_us, part_sizes
from freshline.service.questions import Question
from freshline.spark.answering.request_run import PreparedRequest, RequestRun
from freshline.spark.answering.sliced_query import readable
from freshline.spark.errors import sentence
from freshline.sql.request_sql import RequestRefused, RequestSql, read_request
from freshline.sql.slices import SLICES

# The analysed texts to keep, those that were asked last: their number, and their characters together. A text
# of 1,000 characters takes up to half a megabyte.
_KEPT_MAX: Final = 256
_KEPT_CHARACTERS_MAX: Final = 1 << 18
_WARM_PARTS: Final = (1, 4, 16)
_logger = logging.getLogger(__name__)


class RequestPreparer:
    """Prepares questions in the threads of their clients."""

    def __init__(self, opened: RunResources, sessions: RequestSessions, book: RequestCosts) -> None:
        self._tables = opened.tables.readable
        self._schemas = opened.schemas
        self._readable = readable(opened.part.whole, opened.schemas)  # including other nodes' tables
        self._sessions = sessions
        self._book = book
        self._lock = Lock()
        self._kept: OrderedDict[str, PreparedRequest] = OrderedDict()

    def prepare(self, question: Question) -> ReadPlan:
        """The plan of a question; `ServiceFailure` if it cannot be answered."""
        try:
            prepared = self._prepared(read_request(question.sql, self._readable))
            extent, cost = self._cost(prepared.sql)
            sizes = self._sizes(question, prepared, cost)
        except RequestRefused as error:
            raise failure_of(error) from None
        parts_us = tuple(cost.us(slices) for slices in sizes)
        return ReadPlan(prepared, extent, sizes, parts_us)

    def warm_up(self) -> None:
        """Answers a request over the table with the most rows, in parts."""
        tables = sorted(self._readable, key=lambda name: -self._extent((name,)).rows)
        if not tables or not self._extent(tables[:1]).rows:
            return
        session = self._sessions.take()
        try:
            request = read_request(f"SELECT count(*) AS n, avg(1) AS one FROM {tables[0]}", self._readable)
            run = RequestRun(self._prepared(request), session, self._tables)
            for slices in _WARM_PARTS:
                signals.check()
                run.read(slices)
            run.answer()
        except Exception as error:  # Spark can raise any error
            _logger.info("requests cannot be warmed up: %s", sentence(error))
        finally:
            self._sessions.give_back(session)

    def _prepared(self, sql: RequestSql) -> PreparedRequest:
        with self._lock:
            known = self._kept.get(sql.text)
            if known is not None:
                self._kept.move_to_end(sql.text)
                return known
        session = self._sessions.take()
        try:
            prepared = PreparedRequest(session, sql, self._schemas)
        finally:
            self._sessions.give_back(session)
        with self._lock:
            self._kept[sql.text] = prepared
            while len(self._kept) > _KEPT_MAX or sum(map(len, self._kept)) > _KEPT_CHARACTERS_MAX:
                self._kept.popitem(last=False)
        return prepared

    def _cost(self, sql: RequestSql) -> tuple[RequestExtent, PartCost]:
        """The extent of its data and the cost of its parts, as far as known."""
        extent = self._extent(sql.tables)
        return extent, self._book.cost(sql.text, extent)

    def _extent(self, tables: Sequence[str]) -> RequestExtent:
        return RequestExtent.of(file for name in tables for file in self._tables[name].files)

    def _sizes(self, question: Question, prepared: PreparedRequest, cost: PartCost) -> tuple[int, ...]:
        most_us = part_most_us(question.deadline_us, PART_MOST_US)
        if not prepared.is_whole:
            return part_sizes(cost, most_us, question.share or Fraction(1))
        cost_us = cost.us(SLICES)
        if cost_us > most_us:
            self._book.forget_oldest(prepared.sql.text)
            what = f"its answer needs all rows at once, and reading them takes {format_duration(cost_us)}: "
            what += f"by its deadline a part may take at most {format_duration(most_us)}"
            remedy = "Ask for count, sum, avg, min, max, variance or stddev, grouped; or make it a table"
            raise RequestRefused("not_supported", what, remedy)
        return (SLICES,)
