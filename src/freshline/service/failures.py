"""The errors of the service: a code for programs, a message and a remedy for people."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import JSONResponse

# The HTTP status of each code.
STATUSES: Final = {
    "bad_request": 400,
    "bad_sql": 400,
    "bad_deadline": 400,
    "unauthorized": 401,
    "not_found": 404,
    "method_not_allowed": 405,
    "too_slow": 408,
    "too_large": 413,
    "wrong_host": 421,
    "bad_definition": 422,
    "unknown_class": 422,
    "unknown_table": 422,
    "not_supported": 422,
    "rejected": 429,
    "headers_too_large": 431,
    "failed": 500,
    "stopping": 503,
    "no_answer": 504,
    "undecided": 504,
}


class ServiceFailure(Exception):  # noqa: N818  (an event, not a fault)
    """Why a request gets no answer. `headers` and `more` go into the response."""

    def __init__(
        self,
        code: str,
        message: str,
        remedy: str,
        headers: dict[str, str] | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        assert code in STATUSES, f"{code} is not a code"
        super().__init__(f"{message}. {remedy}.")
        self.code = code
        self.message = message
        self.remedy = remedy
        self.headers = headers or {}
        self.more = more or {}

    @property
    def status(self) -> int:
        return STATUSES[self.code]

    def record(self) -> dict[str, Any]:
        """The body of the response."""
        error = {"code": self.code, "message": self.message, "remedy": self.remedy}
        return {"error": error, **self.more}

    def response(self) -> JSONResponse:
        return JSONResponse(self.record(), self.status, self.headers)


def rejected(retry_after_us: int) -> ServiceFailure:
    """There is no capacity for another request of this class."""
    whole_s = max(1, -(-retry_after_us // 1_000_000))
    message = "the request is not admitted: its class and the more important ones exceed the capacity"
    return ServiceFailure("rejected", message, f"Try again in {whole_s} s", {"Retry-After": str(whole_s)})


def analysing() -> ServiceFailure:
    """Too many earlier requests of this class are not analysed yet."""
    message = "the request is not admitted: Spark still analyses earlier ones of its class"
    return ServiceFailure("rejected", message, "Try again in 2 s", {"Retry-After": "2"})


def stopping() -> ServiceFailure:
    """The run ends."""
    return ServiceFailure("stopping", "the warehouse is stopping", "Ask again once it runs: `freshline run`")


def no_answer() -> ServiceFailure:
    """Not even the first part was done in time."""
    message = "the deadline passed before the first part of the answer was done"
    return ServiceFailure("no_answer", message, "Allow more time, or ask for less")


def headers_too_large(at_most: int) -> ServiceFailure:
    """The first line and the headers are beyond their limit."""
    message = f"the headers have more than {at_most} bytes"
    return ServiceFailure("headers_too_large", message, "Send fewer headers, or shorter ones")


def failed() -> ServiceFailure:
    """A bug, not the client's fault."""
    return ServiceFailure("failed", "this is a bug of Freshline", "Please report it, with the run's log")
