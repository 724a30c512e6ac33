"""Spark sessions that are lent: to read SQL, and to each request while it is answered."""

from __future__ import annotations

from threading import Lock
from typing import Final

from pyspark.sql import SparkSession

from freshline.spark.answering.window_reading import session_for_queries

# What is asked is taken literally. Otherwise Spark puts the machine's environment, and its own settings, for
# `${env:HOME}` and the like, in texts too, and that only after the SQL was looked at.
_SUBSTITUTES: Final = "spark.sql.variable.substitute"


class RequestSessions:
    """Views are a session's: two requests that are at work share none, whichever tracks their parts run on.

    There are as many as were ever lent at a time; any thread may ask.
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
