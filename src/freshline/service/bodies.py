"""Reads bodies of requests up to a limit, and answers those beyond it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from freshline.service.failures import ServiceFailure

# The limit up to which a refused body is read and dropped.
_REFUSED_MAX: Final = 64 << 20
_REFUSED_MAX_S: Final = 10.0


class EarlyResponse(JSONResponse):
    """Answers before the body has come, then reads and drops the rest of it, within limits.

    A connection that is closed with unread bytes is reset, and the client could lose the answer.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        await send(start)
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await _throw_away(receive)
        await send({"type": "http.response.body", "body": b""})


def early(failure: ServiceFailure) -> EarlyResponse:
    """The response to a request whose body is not wanted."""
    return EarlyResponse(failure.record(), failure.status, failure.headers)


class BodyTooLarge(ServiceFailure):
    """A body beyond its limit: declared, or sent so far."""

    def __init__(self, at_most: int) -> None:
        super().__init__("too_large", f"the body has more than {at_most} bytes", "Send less")

    def response(self) -> JSONResponse:
        return early(self)


async def read_body(request: Request, at_most: int) -> bytes:
    """The body of a request. Raises `ServiceFailure` if it is too large or the client has disconnected."""
    if int(request.headers.get("content-length", 0)) > at_most:
        raise BodyTooLarge(at_most)
    body = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ServiceFailure("bad_request", "the body is incomplete", "Send all of it")
        body += message.get("body", b"")
        if len(body) > at_most:
            raise BodyTooLarge(at_most)
        if not message.get("more_body", False):
            return bytes(body)


async def _throw_away(receive: Receive) -> None:
    taken = 0
    try:
        async with asyncio.timeout(_REFUSED_MAX_S):
            while taken <= _REFUSED_MAX:
                message = await receive()
                taken += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
