"""A pool of Spark sessions: to analyse SQL, and for each request while it is answered."""

from __future__ import annotations

from threading import Lock
from typing import Final

from pyspark.sql import SparkSession

from freshline.spark.answering.window_reading import session_for_queries

# SQL is taken literally. Otherwise Spark replaces `${env:HOME}` and the like by the machine's environment
# and its own settings, even within texts, and only after the checks of the SQL.
_SUBSTITUTES: Final = "spark.sql.variable.substitute"


class RequestSessions:
    """Views belong to a session, so two running requests never share one, on whichever tracks they run.

    There are as many sessions as were ever in use at a time; any thread may use the pool.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._lock = Lock()
        self._free: list[SparkSession] = []

    def take(self) -> SparkSession:
        with self._lock:
            if self._free:
                return self._free.pop()
        session = session_for_queries(self._session)
        session.conf.set(_SUBSTITUTES, "false")
        return session

    def give_back(self, session: SparkSession) -> None:
        with self._lock:
            self._free.append(session)
